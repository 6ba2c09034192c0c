// SPDX-License-Identifier: BSD-3-Clause
// The kernel for everything.
#include "kernel/boxed.h"

#include "device/device.h"
#include "device/generator.h"
#include "kernel/device_views.h"
#include "kernel/kernel.h"
#include "kernel/operator_plan.h"

#include <ATen/Context.h>
#include <ATen/core/List.h>

namespace openreg::aten {
namespace {

using Kind = OperatorPlan::Kind;
using torch::jit::Stack;

/// The device of the operator: that of its first device tensor, else of its
/// device argument, else the current one.
class DeviceFinder {
 public:
  void see(const at::Tensor& tensor) {
    if (!tensor.defined() || tensor.device().type() != c10::kPrivateUse1) {
      return;
    }
    const c10::DeviceIndex index = tensor.device().index();
    if (index_ < 0) {
      index_ = index;
    } else {
      TORCH_CHECK(
          index_ == index,
          "Expected all tensors to be on the same device, but found at least "
          "two devices, ",
          c10::Device(c10::kPrivateUse1, index_),
          " and ",
          tensor.device(),
          "!");
    }
  }
  void see(const c10::Device& device) {
    if (index_ < 0 && device.type() == c10::kPrivateUse1) {
      index_ = with_index(device).index();
      check_device(index_);
    }
  }
  c10::DeviceIndex result() const {
    return index_ < 0 ? current_device() : index_;
  }

 private:
  c10::DeviceIndex index_ = -1;
};

class Call {
 public:
  Call(const c10::OperatorHandle& op, Stack& stack)
      : op_(op),
        plan_(plan_of(op)),
        stack_(stack),
        base_(stack.size() - plan_.argument_count),
        device_(find_device()),
        views_(device_) {}

  // [docs: boxed-run]
  void run(const c10::OperatorHandle& target, c10::DispatchKey cpu_key) {
    originals_.reserve(plan_.returned.size());
    for (const int32_t source : plan_.returned) {
      originals_.push_back(
          source >= 0 ? stack_[base_ + static_cast<size_t>(source)]
                      : c10::IValue());
    }
    for (const auto& argument : plan_.arguments) {
      present(argument);
    }
    run_on_current_stream(device_, [&] {
      const KernelScope scope(device_);
      target.redispatchBoxed(c10::DispatchKeySet(cpu_key), &stack_);
    });
    views_.finish();
    take_over_results();
  }
  // [docs: end]

 private:
  c10::IValue& value(const OperatorPlan::Argument& argument) {
    return stack_[base_ + argument.index];
  }

  c10::DeviceIndex find_device() {
    DeviceFinder finder;
    for (const auto& argument : plan_.arguments) {
      const c10::IValue& value = this->value(argument);
      if (value.isNone()) {
        continue;
      }
      switch (argument.kind) {
        case Kind::kTensor:
          finder.see(value.toTensor());
          break;
        case Kind::kTensorList:
          for (const at::Tensor& each : value.toTensorVector()) {
            finder.see(each);
          }
          break;
        case Kind::kOptionalTensorList:
          for (const c10::IValue& each : value.toListRef()) {
            if (each.isTensor()) {
              finder.see(each.toTensor());
            }
          }
          break;
        case Kind::kDevice:
          finder.see(value.toDevice());
          break;
        case Kind::kGenerator:
          break;
      }
    }
    return finder.result();
  }

  at::Tensor present_tensor(
      const at::Tensor& tensor,
      const OperatorPlan::Argument& argument) {
    if (!tensor.defined()) {
      return tensor;
    }
    if (C10_LIKELY(tensor.device().type() == c10::kPrivateUse1)) {
      at::Tensor view = views_.present(tensor, argument.written);
      if (C10_UNLIKELY(plan_.reads_requires_grad)) {
        view.set_requires_grad(tensor.requires_grad());
      }
      return view;
    }
    // As on CUDA, a CPU tensor may stand beside device tensors if it is a
    // scalar that is only read, or indices or lengths.
    TORCH_CHECK(
        tensor.device().is_cpu() && !argument.written &&
            (tensor.dim() == 0 || argument.takes_host),
        "Expected all tensors to be on the same device, but found at least "
        "two devices, ",
        c10::Device(c10::kPrivateUse1, device_),
        " and ",
        tensor.device(),
        "!");
    return tensor;
  }

  void present(const OperatorPlan::Argument& argument) {
    c10::IValue& value = this->value(argument);
    switch (argument.kind) {
      case Kind::kTensor:
        if (!value.isNone()) {
          value = present_tensor(value.toTensor(), argument);
        }
        break;
      case Kind::kTensorList:
        if (!value.isNone()) {
          c10::List<at::Tensor> views;
          for (const at::Tensor& each : value.toTensorVector()) {
            views.push_back(present_tensor(each, argument));
          }
          value = std::move(views);
        }
        break;
      case Kind::kOptionalTensorList: {
        c10::List<std::optional<at::Tensor>> views;
        for (const c10::IValue& each : value.toListRef()) {
          views.push_back(
              each.isTensor()
                  ? std::optional(present_tensor(each.toTensor(), argument))
                  : std::nullopt);
        }
        value = std::move(views);
        break;
      }
      case Kind::kGenerator:
        // Through the hooks, which have none if the mechanism is left out.
        value = cpu_generator(
            value.isNone() ? at::globalContext().defaultGenerator(
                                 c10::Device(c10::kPrivateUse1, device_))
                           : value.toGenerator());
        break;
      case Kind::kDevice:
        if (!value.isNone()) {
          value = c10::Device(c10::kCPU);
        }
        break;
    }
  }

  void take_over_results() {
    const size_t first = stack_.size() - plan_.returned.size();
    for (size_t i = 0; i < plan_.returned.size(); ++i) {
      c10::IValue& result = stack_[first + i];
      if (plan_.returned[i] >= 0) {
        result = std::move(originals_[i]);
      } else if (result.isTensor()) {
        result = views_.take_over(std::move(result).toTensor());
      } else if (result.isTensorList()) {
        auto tensors = result.toTensorVector();
        result = c10::IValue(); // the list's references would look like others'
        c10::List<at::Tensor> taken;
        for (at::Tensor& each : tensors) {
          taken.push_back(views_.take_over(std::move(each)));
        }
        result = std::move(taken);
      }
    }
  }

  const c10::OperatorHandle& op_;
  const OperatorPlan& plan_;
  Stack& stack_;
  const size_t base_;
  const c10::DeviceIndex device_;
  DeviceViews views_;
  c10::SmallVector<c10::IValue, 2> originals_; // results that are arguments
};

} // namespace

void run_boxed(
    const c10::OperatorHandle& op,
    Stack* stack,
    const c10::OperatorHandle& target,
    c10::DispatchKey cpu_key) {
  TORCH_CHECK_NOT_IMPLEMENTED(
      target.hasComputedKernelForDispatchKey(cpu_key),
      "Could not run '",
      op.operator_name(),
      "' on device type ",
      c10::kPrivateUse1,
      ": it has no kernel for the device, and none for ",
      cpu_key,
      " that the device could run.");
  Call(op, *stack).run(target, cpu_key);
}

} // namespace openreg::aten
