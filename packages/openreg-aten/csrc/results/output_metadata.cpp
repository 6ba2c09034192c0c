// SPDX-License-Identifier: BSD-3-Clause
// The output metadata cache, and the keys of its entries.
#include "results/output_metadata.h"

#include "base/keys.h"
#include "codec/components.h"

#include <ATen/Context.h>
#include <c10/core/DefaultDtype.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <mutex>
#include <shared_mutex>
#include <unordered_map>
#include <unordered_set>

namespace openreg::aten {
namespace {

// The cache is cleared at this size, for programs with ever new shapes.
constexpr size_t kMaxEntries = size_t{1} << 16;

struct DigestHash {
  size_t operator()(uint64_t digest) const {
    return digest;
  }
};

/// Entries by the digests of calls.
struct OutputMetadataCache {
  std::shared_mutex mutex;
  std::
      unordered_map<uint64_t, std::shared_ptr<const OutputMetadata>, DigestHash>
          entries;
  std::unordered_set<uint64_t, DigestHash> failed; // calls whose kernel failed
};

OutputMetadataCache& cache() {
  static auto* value = new OutputMetadataCache;
  return *value;
}

// How often the cache was cleared.
std::atomic<uint64_t> g_age{0};

// The keys that were seen last.
std::array<std::atomic<uint64_t>, 4096> g_seen;

/// The entry of a key in g_seen, which includes the age of the cache.
uint64_t seen_now(uint64_t digest) {
  return digest ^ g_age.load(std::memory_order_relaxed) << 32;
}

void mark_seen(uint64_t digest) {
  g_seen[digest % g_seen.size()].store(
      seen_now(digest), std::memory_order_relaxed);
}

bool owns_memory(const at::Tensor& tensor) {
  return tensor.layout() == c10::kStrided &&
      !codec::has_components(*tensor.unsafeGetTensorImpl()) &&
      !tensor.is_quantized() && tensor.has_storage() &&
      tensor.storage_offset() == 0 && tensor.storage().use_count() == 1 &&
      !tensor.is_conj() && !tensor.is_neg() && !tensor._is_zerotensor();
}

void insert(uint64_t digest, std::shared_ptr<const OutputMetadata> entry) {
  OutputMetadataCache& all = cache();
  const std::unique_lock lock(all.mutex);
  if (all.entries.size() >= kMaxEntries) {
    all.entries.clear();
    all.failed.clear();
    g_age.fetch_add(1, std::memory_order_relaxed);
  }
  all.entries.insert_or_assign(digest, std::move(entry));
}

} // namespace

bool has_default_strides(const c10::TensorImpl& tensor) {
  const at::IntArrayRef sizes = tensor.sizes();
  const at::IntArrayRef strides = tensor.strides();
  int64_t expected = 1;
  for (size_t i = sizes.size(); i-- > 0;) {
    if (strides[i] != expected) {
      return false;
    }
    expected *= std::max<int64_t>(sizes[i], 1);
  }
  return true;
}

/// The default dtype and the determinism settings are not arguments, but also
/// affect the results.
uint64_t digest_of(const CallKey& key) {
  constexpr uint64_t kDeterministic = uint64_t{1} << 32;
  constexpr uint64_t kWarnOnly = uint64_t{1} << 33; // else it throws
  const at::Context& context = at::globalContext();
  return key.digest() +
      static_cast<uint64_t>(c10::get_default_dtype_as_scalartype()) +
      (context.deterministicAlgorithms() ? kDeterministic : 0) +
      (context.deterministicAlgorithmsWarnOnly() ? kWarnOnly : 0);
}

void CallKey::add(const at::Tensor& tensor) {
  if (!tensor.defined()) {
    add_number(3);
    return;
  }
  if (codec::has_components(*tensor.unsafeGetTensorImpl()) ||
      !tensor.has_storage() || tensor.is_quantized() ||
      tensor._is_zerotensor()) {
    usable_ = false;
    return;
  }
  const c10::TensorImpl& impl = *tensor.unsafeGetTensorImpl();
  add_number(
      static_cast<uint64_t>(impl.device_type()) << 40 |
      static_cast<uint64_t>(tensor.scalar_type()) << 24 |
      static_cast<uint64_t>(impl.is_conj()) << 2 |
      static_cast<uint64_t>(impl.is_neg()) << 1 |
      static_cast<uint64_t>(impl.is_wrapped_number()));
  // Overlapping elements are an error.
  if (!takes_any_size_ || !memory_.empty() ||
      !impl.is_non_overlapping_and_dense()) {
    add_geometry(impl);
  }
  may_raise_ = may_raise_ ||
      c10::isIntegralType(tensor.scalar_type(), /*includeBool=*/false);
  if (impl.device_type() == kDeviceType) {
    bytes_ += static_cast<size_t>(impl.numel()) * impl.itemsize();
  }
  const void* storage = impl.storage().unsafeGetStorageImpl();
  const int64_t begin =
      impl.storage_offset() * static_cast<int64_t>(impl.itemsize());
  const auto shared = by_storage_.find(
      memory_, storage, [](const Memory& each) { return each.storage; });
  if (C10_UNLIKELY(shared.has_value())) {
    add_number(*shared);
    add_number(static_cast<uint64_t>(begin - memory_[*shared].begin));
  }
  memory_.push_back({storage, begin});
}

void CallKey::add(double value) {
  if (C10_UNLIKELY(reads_numbers_)) {
    add(std::optional(value));
    return;
  }
  // Kernels reject negative numbers, and numbers that their dtype cannot
  // represent.
  constexpr std::array kLargest{
      0.0, 127.0, 255.0, 32767.0, 65504.0, 2147483647.0, 9.2e18, 3.4e38};
  const double magnitude = std::abs(value);
  const auto range =
      std::lower_bound(kLargest.begin(), kLargest.end(), magnitude);
  add_number(
      static_cast<uint64_t>(range - kLargest.begin()) << 3 |
      static_cast<uint64_t>(std::isnan(value)) << 2 |
      static_cast<uint64_t>(std::isinf(value)) << 1 |
      static_cast<uint64_t>(std::signbit(value)));
}

void CallKey::add_geometry(const c10::TensorImpl& tensor) {
  const at::IntArrayRef sizes = tensor.sizes();
  add_number(sizes.size());
  for (const int64_t size : sizes) {
    add_number(static_cast<uint64_t>(size));
  }
  if (!has_default_strides(tensor)) {
    add_number(~uint64_t{0}); // not a valid size
    for (const int64_t stride : tensor.strides()) {
      add_number(static_cast<uint64_t>(stride));
    }
  }
}

void CallKey::add(const c10::Scalar& value) {
  add_number(static_cast<uint64_t>(value.type()));
  constexpr double kMaxOfEveryDtype = 127;
  may_raise_ = may_raise_ || value.isComplex() ||
      !(std::abs(value.toDouble()) <= kMaxOfEveryDtype);
  if (value.isFloatingPoint()) {
    add(value.toDouble());
  }
  if (value.isIntegral(/*includeBool=*/true)) {
    add_number(
        value.type() == c10::ScalarType::UInt64
            ? value.toUInt64()
            : static_cast<uint64_t>(value.toLong()));
  }
}

void CallKey::add(const c10::IValue& value) {
  // Starts with a tag, because an argument may be one of several types.
  enum Tag : uint64_t { kNone, kTensor, kInt, kBool, kDouble, kComplex, kList };
  if (value.isTensor()) {
    add_number(kTensor);
    add(value.toTensor());
  } else if (value.isNone()) {
    add_number(kNone);
  } else if (value.isInt()) {
    add_number(kInt);
    add_number(static_cast<uint64_t>(value.toInt()));
  } else if (value.isBool()) {
    add_number(kBool);
    add_number(value.toBool() ? 1 : 0);
  } else if (value.isDouble()) {
    add_number(kDouble);
    add(value.toDouble());
  } else if (value.isComplexDouble()) {
    add_number(kComplex);
  } else if (value.isString()) {
    add(std::string_view(value.toStringRef()));
  } else if (value.isList()) {
    const auto elements = value.toListRef();
    add_number(kList);
    add_number(elements.size());
    for (const c10::IValue& each : elements) {
      if (each.isDouble()) {
        add(std::optional(each.toDouble()));
      } else {
        add(each);
      }
      if (each.isTensor()) {
        refuse_mask(each.toTensor()); // a list of indices
      }
    }
  } else if (value.isDevice()) {
    add_number(static_cast<uint64_t>(value.toDevice().index()) + 1);
  } else if (!value.isGenerator()) { // affects only values
    usable_ = false;
  }
}

TensorMetadata metadata_of(const at::Tensor& tensor) {
  if (!tensor.defined()) {
    return {false, c10::ScalarType::Undefined, {}, {}};
  }
  return {
      true,
      tensor.scalar_type(),
      c10::DimVector(tensor.sizes()),
      c10::DimVector(tensor.strides())};
}

std::shared_ptr<const OutputMetadata> find_output_metadata(const CallKey& key) {
  OutputMetadataCache& all = cache();
  const std::shared_lock lock(all.mutex);
  const auto found = all.entries.find(digest_of(key));
  return found == all.entries.end() ? nullptr : found->second;
}

bool was_seen(const CallKey& key) {
  const uint64_t digest = digest_of(key);
  return g_seen[digest % g_seen.size()].load(std::memory_order_relaxed) ==
      seen_now(digest);
}

void remember_seen(const CallKey& key) {
  mark_seen(digest_of(key));
}

std::shared_ptr<const OutputMetadata> cache_output_metadata(
    const CallKey& key,
    at::ArrayRef<at::Tensor> made,
    at::ArrayRef<at::Tensor> resized,
    bool share_memory) {
  const uint64_t digest = digest_of(key);
  mark_seen(digest);
  OutputMetadata metadata;
  for (const at::Tensor& tensor : made) {
    if (tensor.defined() && !owns_memory(tensor)) {
      return nullptr;
    }
    metadata.made.push_back(metadata_of(tensor));
  }
  for (const at::Tensor& tensor : resized) {
    if (share_memory || !tensor.is_non_overlapping_and_dense()) {
      return nullptr; // it has gaps or shares memory
    }
    metadata.resized.push_back(metadata_of(tensor));
  }
  auto entry = std::make_shared<const OutputMetadata>(std::move(metadata));
  insert(digest, entry);
  return entry;
}

void correct_output_metadata(
    uint64_t digest,
    std::vector<TensorMetadata> made) {
  insert(
      digest,
      std::make_shared<const OutputMetadata>(
          OutputMetadata{std::move(made), {}}));
}

void forget_output_metadata(uint64_t digest) {
  g_seen[digest % g_seen.size()].store(0, std::memory_order_relaxed);
  OutputMetadataCache& all = cache();
  const std::unique_lock lock(all.mutex);
  all.entries.erase(digest);
  all.failed.insert(digest);
}

bool has_failed(const CallKey& key) {
  OutputMetadataCache& all = cache();
  const std::shared_lock lock(all.mutex);
  return all.failed.count(digest_of(key)) > 0;
}

} // namespace openreg::aten
