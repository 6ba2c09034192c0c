// SPDX-License-Identifier: BSD-3-Clause
// Calls a kernel with stand-ins for its tensors: new tensors with the same
// metadata, without device data.
#pragma once

#include "facts/operator_info.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include <unordered_map>
#include <utility>
#include <vector>

namespace openreg::aten {

/// A dry run above this size costs the host more memory and time than waiting.
constexpr size_t kMaxDryRunBytes = size_t{64} << 20;

/// Stand-ins are CPU tensors filled with zeros or ones. They share memory in
/// the same way as the arguments. Host tensors are passed unchanged.
class StandInCall {
 public:
  enum class Setting : uint8_t {
    kZeros,
    kOnes,         // filled with ones, except for rare dtypes
    kEmptyResults, // avoids warnings about resizing results with elements
  };
  StandInCall(
      const OperatorInfo& info,
      torch::jit::Stack&& stack,
      Setting setting)
      : info_(info), stack_(std::move(stack)), setting_(setting) {}

  /// Replaces the arguments. Returns false if the operator rejects one, or if
  /// stand-ins would need too much memory.
  bool replace_arguments();
  /// Whether a written argument overlaps with another argument or itself.
  bool has_overlap() const {
    return overlaps_;
  }

  /// Runs the CPU kernel. Returns false if it warned, even if PyTorch would
  /// show the warning only once and has shown it before.
  bool run(const c10::OperatorHandle& op);

  /// Returns the results that are not arguments.
  std::vector<at::Tensor> made() const;
  /// Returns the results that are arguments, if the sizes or strides of an
  /// argument have changed.
  std::vector<at::Tensor> resized() const;
  /// Whether an argument has changed in a way that the caller would not see, or
  /// would not be warned about, if the operator were enqueued.
  bool has_hidden_change() const;
  /// Whether a result shares the memory of an argument.
  bool aliases_argument(const std::vector<at::Tensor>& results) const;

 private:
  struct Metadata {
    c10::DimVector sizes;
    c10::DimVector strides;
    int64_t offset;
    const void* storage;
    bool conj;
    bool neg;
  };

  static Metadata read_metadata(const at::Tensor& tensor);
  bool is_resized() const;
  at::Tensor stand_in_of(
      const at::Tensor& tensor,
      const OperatorInfo::Argument& argument);
  c10::IValue stand_ins_of(
      const OperatorInfo::Argument& argument,
      const c10::IValue& value);
  at::Tensor make_stand_in(const c10::TensorImpl& from);
  c10::Storage make_stand_in_storage(const c10::TensorImpl& from);

  const OperatorInfo& info_;
  torch::jit::Stack stack_;
  const Setting setting_;
  std::unordered_map<const c10::TensorImpl*, at::Tensor> tensors_;
  struct Shared {
    c10::Storage storage;
    bool written;
  };
  std::unordered_map<const void*, Shared> storages_;
  size_t bytes_ = 0; // of all storages
  bool refused_ = false;
  bool overlaps_ = false;
  std::vector<at::Tensor> written_;
  std::vector<Metadata> before_; // one per written argument
};

} // namespace openreg::aten
