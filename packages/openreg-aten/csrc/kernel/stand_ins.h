// SPDX-License-Identifier: BSD-3-Clause
// A call of a kernel with stand-ins for its tensors: new tensors of the same
// metadata, without values of the device.
#pragma once

#include "kernel/operator_plan.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include <unordered_map>
#include <utility>
#include <vector>

namespace openreg::aten {

/// On the meta device stand-ins have no memory. On the CPU they are full of
/// zeros, or, if they are integers and that is asked for, of ones; they share
/// memory as the arguments do, and tensors of the host stand for themselves.
class StandInCall {
 public:
  StandInCall(
      const OperatorPlan& plan,
      torch::jit::Stack&& stack,
      c10::DeviceType device,
      bool ones = false)
      : plan_(plan), stack_(std::move(stack)), device_(device), ones_(ones) {}

  /// Replaces the arguments; false if a written one shares memory with another
  /// or itself, which meta kernels do not see.
  bool present();

  /// Runs the kernel for the stand-ins' device; false if it has warned.
  bool run(const c10::OperatorHandle& op);

  /// The results that are no arguments.
  std::vector<at::Tensor> made() const;
  /// The arguments that were written, if one has another geometry now.
  std::vector<at::Tensor> resized() const;
  /// Whether each written argument is a result: only then are their sizes known
  /// to whoever enqueues.
  bool returns_all_written() const;
  /// Whether a result shares the memory of an argument.
  bool aliases_argument(const std::vector<at::Tensor>& results) const;

 private:
  using Geometry = std::pair<c10::DimVector, c10::DimVector>;

  static Geometry geometry_of(const at::Tensor& tensor);
  at::Tensor stand_in_of(const at::Tensor& tensor, bool written);
  c10::IValue stand_ins_of(
      const OperatorPlan::Argument& argument,
      const c10::IValue& value);
  at::Tensor make_stand_in(const c10::TensorImpl& from);
  c10::Storage make_storage(const c10::TensorImpl& from) const;

  const OperatorPlan& plan_;
  torch::jit::Stack stack_;
  const c10::Device device_;
  const bool ones_;
  std::unordered_map<const c10::TensorImpl*, at::Tensor> tensors_;
  struct Shared {
    c10::Storage storage;
    bool written;
  };
  std::unordered_map<const void*, Shared> storages_;
  bool overlaps_ = false;
  std::vector<at::Tensor> written_;
  std::vector<Geometry> before_;
};

} // namespace openreg::aten
