// SPDX-License-Identifier: BSD-3-Clause
// A call of a kernel with stand-ins for its tensors: new tensors of the same
// metadata, without values of the device.
#pragma once

#include "facts/operator_info.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include <unordered_map>
#include <utility>
#include <vector>

namespace openreg::aten {

/// Above this, a dry run costs the host more memory and time than a wait.
constexpr size_t kMostDryRunBytes = size_t{64} << 20;

/// Stand-ins are tensors of the CPU, full of zeros. They share memory as the
/// arguments do, and tensors of the host stand for themselves.
class StandInCall {
 public:
  enum class Setting : uint8_t {
    kZeros,
    kOnes,         // integers are full of ones
    kEmptyResults, // so that kernels do not warn of results with elements
  };
  StandInCall(
      const OperatorInfo& info,
      torch::jit::Stack&& stack,
      Setting setting)
      : info_(info), stack_(std::move(stack)), setting_(setting) {}

  /// Replaces the arguments; false if the operator does not accept one, or if
  /// stand-ins would need too much memory.
  bool replace_arguments();
  /// Whether an argument that is written shares memory with another, or itself.
  bool has_overlap() const {
    return overlaps_;
  }

  /// Runs the CPU's kernel; false if it has warned, also
  /// with a warning that PyTorch gives once and has given before.
  bool run(const c10::OperatorHandle& op);

  /// The results that are no arguments.
  std::vector<at::Tensor> made() const;
  /// The results that are arguments, if an argument has other sizes or strides
  /// now.
  std::vector<at::Tensor> resized() const;
  /// Whether an argument has changed in a way that a caller would not see, or
  /// not be warned of, if the operator were enqueued.
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
  c10::Storage make_storage(const c10::TensorImpl& from);

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
  std::vector<Metadata> before_; // of those
};

} // namespace openreg::aten
