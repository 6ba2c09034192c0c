// SPDX-License-Identifier: BSD-3-Clause
// The output metadata cache: dtypes, sizes and strides of the results of a
// call, kept for later calls with the same metadata.
//
// An operator can be enqueued if its results can be made before it runs. Their
// metadata follows from the metadata of the arguments. For a call that is new
// it is found without the stream (first_call.h), or the call runs at once;
// either way it is cached.
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

/// What decides about the results of a call: the operator, the metadata of its
/// tensors, and its other arguments, of floating point numbers only the range.
class CallKey {
 public:
  CallKey(const c10::OperatorHandle& op, const OperatorInfo& info)
      : usable_(info.results_follow_from_metadata),
        reads_numbers_(info.reads_numbers),
        takes_any_size_(info.takes_any_size) {
    add_number(static_cast<uint64_t>(std::hash<c10::OperatorHandle>{}(op)));
  }

  /// False if values of tensors matter too.
  bool usable() const {
    return usable_;
  }
  void refuse() {
    usable_ = false;
  }
  /// Bytes of all elements of the device tensors.
  size_t bytes() const {
    return bytes_;
  }
  /// Whether a kernel may refuse values: integers, which may be indices, or
  /// numbers that a small dtype does not have.
  bool may_raise() const {
    return may_raise_;
  }
  /// Stands for the key: of a million others, one has the same with a
  /// probability of less than 1e-13.
  uint64_t digest() const {
    return digest_;
  }

  void add(const at::Tensor& tensor);
  void add(const c10::IValue& value);
  void add(const c10::Scalar& value);
  void add(const at::Generator&) {} // only values come from it
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
    refuse(); // the result may be another device's
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
        see_mask(*tensor);
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
  /// How many elements a mask chooses, its values say.
  void see_mask(const at::Tensor& index) {
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
  // Arguments that share memory: an operator may refuse it.
  struct Memory {
    const void* storage;
    int64_t begin; // the place of the first element, in bytes
  };
  c10::SmallVector<Memory, 8> memory_;
  PointerTable by_storage_; // places in memory_
};

/// The metadata of a new tensor, or of one that a call has resized.
struct TensorMetadata {
  bool defined;
  c10::ScalarType dtype;
  c10::DimVector sizes;
  c10::DimVector strides;
};
TensorMetadata metadata_of(const at::Tensor& tensor);

struct OutputMetadata {
  std::vector<TensorMetadata> made; // new tensors, in order
  // The tensors that the call writes to, if it changes the sizes or strides of
  // one; else empty.
  std::vector<TensorMetadata> resized;
};

/// Whether the strides follow from the sizes. Not is_contiguous(), to which
/// they do not matter where a size is 1, or without elements: results show
/// them.
bool has_default_strides(const c10::TensorImpl& tensor);

/// The metadata of what a call with this key makes; null if it is not cached.
std::shared_ptr<const OutputMetadata> find_output_metadata(const CallKey& key);

/// Whether the outputs of a call with this key were cached, or refused, before:
/// a quick check, which may answer no for a key that was.
bool was_seen(const CallKey& key);

/// Remembers that, for a call whose outputs cannot be cached.
void remember_seen(const CallKey& key);

/// Caches what a call makes, if its new tensors own their memory, and returns
/// that; else null. `resized` are the tensors that it writes to, if it
/// changes any; it is null, too, if these share memory with others, which
/// kernels look for before they resize them.
std::shared_ptr<const OutputMetadata> cache_output_metadata(
    const CallKey& key,
    at::ArrayRef<at::Tensor> made,
    at::ArrayRef<at::Tensor> resized,
    bool share_memory);

/// The number by which forget_output_metadata() and correct_output_metadata()
/// know a call.
uint64_t digest_of(const CallKey& key);
/// Caches what a call made that a dry run did not show. Its tensors need
/// not own their memory: an enqueued call's are copied into place.
void correct_output_metadata(uint64_t digest, std::vector<TensorMetadata> made);
/// Forgets the outputs of a call whose kernel has failed, so that the next one
/// runs at once, and its error is that call's.
void forget_output_metadata(uint64_t digest);
bool has_failed(const CallKey& key);

} // namespace openreg::aten
