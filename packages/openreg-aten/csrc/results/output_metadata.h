// SPDX-License-Identifier: BSD-3-Clause
// The output metadata cache: dtypes, sizes and strides of the results of a
// call, kept for later calls with the same metadata.
//
// An operator can be enqueued if its results can be allocated before it runs.
// Their metadata follows from the metadata of the arguments. For a new call it
// is predicted without the stream (first_call.h), or the call runs immediately.
// The metadata is cached in both cases.
#pragma once

#include "base/pointer_table.h"
#include "facts/operator_info.h"

#include <ATen/core/IListRef.h>
#include <ATen/core/List.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <array>
#include <bit>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <type_traits>
#include <vector>

namespace openreg::aten {

/// Identifies the calls with equal result metadata: the operator, the metadata
/// of its tensors, and its other arguments. Of floating point numbers it
/// contains only the range.
class CallKey {
 public:
  CallKey(const c10::OperatorHandle& op, const OperatorInfo& info)
      : usable_(info.results_follow_from_metadata),
        reads_numbers_(info.reads_numbers),
        takes_any_size_(info.takes_any_size) {
    add_number(static_cast<uint64_t>(std::hash<c10::OperatorHandle>{}(op)));
  }

  /// False if the results also depend on values of tensors.
  bool usable() const {
    return usable_;
  }
  void refuse() {
    usable_ = false;
  }
  /// The bytes of all elements of the device tensors.
  size_t bytes() const {
    return bytes_;
  }
  /// Whether a kernel may reject values: integers, which may be indices, or
  /// numbers that a small dtype cannot represent.
  bool may_raise() const {
    return may_raise_;
  }
  /// A hash of the key. The probability that one of a million other keys has
  /// the same digest is less than 1e-13.
  uint64_t digest() const {
    return digest_;
  }

  void add(const at::Tensor& tensor);
  void add(const c10::IValue& value);
  void add(const c10::Scalar& value);
  void add(const at::Generator&) {} // affects only values
  void add(std::string_view value) {
    add_number(std::hash<std::string_view>{}(value));
  }
  void add(const c10::SymInt& value) {
    add_number(static_cast<uint64_t>(value.expect_int()));
  }
  void add(double value);
  void add(const std::optional<double>& value) {
    add_number(value ? std::bit_cast<uint64_t>(*value) : 2);
  }
  void add(c10::ArrayRef<double> values) { // scales of sizes
    add_number(values.size());
    for (const double value : values) {
      add_number(std::bit_cast<uint64_t>(value));
    }
  }
  void add(const c10::Device&) {
    refuse(); // the result may be on another device
  }
  template <
      typename Number,
      std::enable_if_t<
          std::is_integral_v<Number> || std::is_enum_v<Number>,
          int> = 0>
  void add(Number value) {
    add_number(static_cast<uint64_t>(value));
  }
  template <typename Value>
  void add(const std::optional<Value>& value) {
    add_number(value.has_value() ? 1 : 2);
    if (value) {
      add(*value);
    }
  }
  template <typename Value>
  void add(const c10::OptionalArrayRef<Value>& value) {
    add_number(value.has_value() ? 1 : 2);
    if (value) {
      add(*value);
    }
  }
  template <typename Value>
  void add(c10::ArrayRef<Value> values) {
    add_each(values);
  }
  template <typename Value, size_t count>
  void add(const std::array<Value, count>& values) {
    add_each(values);
  }
  void add(const at::ITensorListRef& tensors) {
    add_each(tensors);
  }
  /// Indices.
  void add(const c10::List<std::optional<at::Tensor>>& tensors) {
    add_number(tensors.size());
    for (const std::optional<at::Tensor> tensor : tensors) {
      add(tensor);
      if (tensor) {
        refuse_mask(*tensor);
      }
    }
  }

 private:
  template <typename Values>
  void add_each(const Values& values) {
    add_number(values.size());
    for (const auto& value : values) {
      add(value);
    }
  }
  /// The number of elements that a mask selects depends on its values.
  void refuse_mask(const at::Tensor& index) {
    usable_ = usable_ &&
        !(index.defined() &&
          (index.scalar_type() == at::kBool ||
           index.scalar_type() == at::kByte));
  }
  void add_geometry(const c10::TensorImpl& tensor);
  void add_number(uint64_t number) {
    const auto product =
        static_cast<unsigned __int128>(digest_ ^ number) * 0x9e3779b97f4a7c15;
    digest_ = static_cast<uint64_t>(product) ^
        static_cast<uint64_t>(product >> 64) ^ number;
  }

  bool usable_;
  bool may_raise_ = false;
  bool reads_numbers_;
  bool takes_any_size_;
  size_t bytes_ = 0;
  uint64_t digest_ = 0x2545f4914f6cdd1d;
  // The memory of an argument. An operator may reject arguments that share
  // memory.
  struct Memory {
    const void* storage;
    int64_t begin; // of the first element, in bytes
  };
  c10::SmallVector<Memory, 8> memory_;
  PointerTable by_storage_; // indices into memory_
};

/// The metadata of a new tensor, or of a tensor that a call has resized.
struct TensorMetadata {
  bool defined;
  c10::ScalarType dtype;
  c10::DimVector sizes;
  c10::DimVector strides;
};
TensorMetadata metadata_of(const at::Tensor& tensor);

struct OutputMetadata {
  std::vector<TensorMetadata> made; // new tensors, in order
  // The tensors that the call writes to, if it changes their sizes or strides,
  // else empty.
  std::vector<TensorMetadata> resized;
};

/// Whether the strides are the default for the sizes. Unlike is_contiguous(),
/// this also compares strides of dimensions of size 1 and of empty tensors,
/// because they are visible in results.
bool has_default_strides(const c10::TensorImpl& tensor);

/// Returns the cached result metadata for a key, or null.
std::shared_ptr<const OutputMetadata> find_output_metadata(const CallKey& key);

/// Whether the results of a call with this key were cached or refused before.
/// This quick check may return false for a key that was seen.
bool was_seen(const CallKey& key);

/// Marks a key as seen if its results cannot be cached.
void remember_seen(const CallKey& key);

/// Caches the results of a call and returns them if its new tensors own their
/// memory, else null. `resized` are the written tensors if the call changed
/// any. It is null if they share memory with others, which kernels check before
/// they resize.
std::shared_ptr<const OutputMetadata> cache_output_metadata(
    const CallKey& key,
    at::ArrayRef<at::Tensor> made,
    at::ArrayRef<at::Tensor> resized,
    bool share_memory);

/// The number that identifies a call for forget_output_metadata() and
/// correct_output_metadata().
uint64_t digest_of(const CallKey& key);
/// Replaces cached metadata that a dry run predicted wrongly. The tensors need
/// not own their memory, because the results of an enqueued call are copied.
void correct_output_metadata(uint64_t digest, std::vector<TensorMetadata> made);
/// Forgets the results of a call whose kernel has failed. The next call with
/// this digest runs inline and raises the error itself.
void forget_output_metadata(uint64_t digest);
bool has_failed(const CallKey& key);

} // namespace openreg::aten
