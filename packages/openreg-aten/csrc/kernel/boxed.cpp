// SPDX-License-Identifier: BSD-3-Clause
// The boxed kernel.
#include "kernel/boxed.h"

#include "alias/cpu_aliases.h"
#include "alias/device_finder.h"
#include "alias/extent.h"
#include "base/keys.h"
#include "call/dispatch_paths.h"
#include "call/submit.h"
#include "facts/operator_info.h"
#include "kernel/wider.h"
#include "random/generator.h"
#include "results/output_metadata.h"

#include <ATen/Context.h>
#include <ATen/core/List.h>

#include <iterator>
#include <vector>

namespace openreg::aten {
namespace {

using Kind = OperatorInfo::Kind;
using torch::jit::Stack;

/// A call with its arguments on a stack.
class BoxedCall final : public Call {
 public:
  BoxedCall(
      const c10::OperatorHandle& op,
      const c10::OperatorHandle& target,
      c10::DispatchKey cpu_key,
      const OperatorInfo& info,
      Stack& stack)
      : Call(op, info, find_device(info, stack), DispatchPath::kBoxed),
        target_(target),
        cpu_key_(cpu_key),
        stack_(stack),
        base_(stack.size() - info.argument_count) {
    if (C10_UNLIKELY(info.uses_generator)) {
      prepare_cpu_generator();
    }
  }

  void add_to(CallKey& key) const override {
    if (cpu_key_ != c10::DispatchKey::CPU) {
      key.refuse();
    }
    for (size_t i = base_; key.usable() && i < stack_.size(); ++i) {
      key.add(stack_[i]);
    }
  }
  Stack arguments() const override {
    return Stack(
        stack_.begin() + static_cast<std::ptrdiff_t>(base_), stack_.end());
  }
  const c10::OperatorHandle& target() const override {
    return target_;
  }

  c10::DispatchKey key() const override {
    return cpu_key_;
  }

  Stack alias_for_later() override {
    alias();
    const auto first = stack_.begin() + static_cast<std::ptrdiff_t>(base_);
    Stack arguments(
        std::make_move_iterator(first), std::make_move_iterator(stack_.end()));
    stack_.resize(base_);
    return arguments;
  }
  void take(std::vector<at::Tensor>&& made) override {
    if (returns_list()) {
      stack_.emplace_back(std::move(made));
      return;
    }
    size_t next = 0;
    for (const int32_t source : info().returned) {
      if (source >= 0) {
        stack_.push_back(std::move(originals_[static_cast<size_t>(source)]));
      } else {
        stack_.emplace_back(std::move(made[next++]));
      }
    }
  }

  void alias() override {
    originals_.reserve(info().arguments.size());
    for (const auto& argument : info().arguments) {
      replace_argument(argument);
    }
  }
  void run() override {
    target_.redispatchBoxed(c10::DispatchKeySet(cpu_key_), &stack_);
  }
  void receive(Stack&& results) override {
    std::move(results.begin(), results.end(), std::back_inserter(stack_));
  }
  void adopt() override {
    for (size_t i = 0; i < info().returned.size(); ++i) {
      adopt_result(result(i), info().returned[i]);
    }
  }
  std::vector<at::Tensor> made() const override {
    if (returns_list()) {
      return stack_.back().toTensorVector();
    }
    std::vector<at::Tensor> results;
    for (size_t i = 0; i < info().returned.size(); ++i) {
      if (info().returned[i] < 0) {
        results.push_back(result(i).toTensor());
      }
    }
    return results;
  }
  std::vector<at::Tensor> written() const override {
    const bool has_run = !originals_.empty();
    std::vector<at::Tensor> tensors;
    for (size_t i = 0; i < info().returned.size(); ++i) {
      if (info().returned[i] >= 0) {
        const auto& argument =
            info().arguments[static_cast<size_t>(info().returned[i])];
        tensors.push_back(
            (has_run ? result(i) : stack_[base_ + argument.index]).toTensor());
      }
    }
    return tensors;
  }

 private:
  c10::IValue& value(const OperatorInfo::Argument& argument) {
    return stack_[base_ + argument.index];
  }
  c10::IValue& result(size_t index) const {
    return stack_[stack_.size() - info().returned.size() + index];
  }

  static c10::DeviceIndex find_device(
      const OperatorInfo& info,
      const Stack& stack) {
    const size_t base = stack.size() - info.argument_count;
    DeviceFinder finder;
    for (const auto& argument : info.arguments) {
      const c10::IValue& value = stack[base + argument.index];
      if (value.isNone()) {
        continue;
      }
      switch (argument.kind) {
        case Kind::kTensor:
          finder.visit(value.toTensor());
          break;
        case Kind::kTensorList:
        case Kind::kOptionalTensorList:
          for (const c10::IValue& each : value.toListRef()) {
            if (each.isTensor()) {
              finder.visit(each.toTensor());
            }
          }
          break;
        case Kind::kDevice:
          finder.visit(value.toDevice());
          break;
        case Kind::kGenerator:
          break;
      }
    }
    if (C10_UNLIKELY(info.uses_generator)) {
      finder.check_generator();
    }
    return finder.result();
  }

  at::Tensor& alias_tensor(
      const at::Tensor& tensor,
      const OperatorInfo::Argument& argument) {
    at::Tensor& aliased = aliases().alias_argument(tensor, argument);
    if (C10_UNLIKELY(info().reads_requires_grad)) {
      aliased.set_requires_grad(tensor.requires_grad());
    }
    return aliased;
  }

  /// Replaces an argument with the tensor for the CPU kernel. Moves the
  /// argument itself aside, so that no tensor gets a new reference.
  void replace_argument(const OperatorInfo::Argument& argument) {
    c10::IValue& value = this->value(argument);
    originals_.push_back(std::move(value));
    const c10::IValue& original = originals_.back();
    value = c10::IValue();
    switch (argument.kind) {
      case Kind::kTensor:
        if (!original.isNone()) {
          value = alias_tensor(original.toTensor(), argument);
        }
        break;
      case Kind::kTensorList:
        if (!original.isNone()) {
          c10::List<at::Tensor> list;
          for (const c10::IValue& each : original.toListRef()) {
            list.push_back(alias_tensor(each.toTensor(), argument));
          }
          value = std::move(list);
        }
        break;
      case Kind::kOptionalTensorList: {
        c10::List<std::optional<at::Tensor>> list;
        for (const c10::IValue& each : original.toListRef()) {
          list.push_back(
              each.isTensor()
                  ? std::optional(alias_tensor(each.toTensor(), argument))
                  : std::nullopt);
        }
        value = std::move(list);
        break;
      }
      case Kind::kGenerator:
        value = original; // replaced before
        break;
      case Kind::kDevice:
        if (!original.isNone()) {
          value = c10::Device(c10::kCPU);
        }
        break;
    }
  }

  /// This comes first, because the stream may have to wait for other draws.
  void prepare_cpu_generator() {
    for (const auto& argument : info().arguments) {
      if (argument.kind == Kind::kGenerator) {
        c10::IValue& value = this->value(argument);
        value = openreg::aten::prepare_cpu_generator(
            device(), value.toOptional<at::Generator>());
      }
    }
  }

  bool returns_list() const {
    const auto& returns = op().schema().returns();
    return info().returned.size() == 1 && info().returned[0] < 0 &&
        returns[0].type()->kind() == c10::TypeKind::ListType;
  }

  void adopt_result(c10::IValue& result, int32_t source) {
    if (source >= 0) {
      c10::IValue& original = originals_[static_cast<size_t>(source)];
      if (C10_UNLIKELY(result.isTensor() && result.toTensor().is_quantized())) {
        aliases().replace(original.toTensor(), std::move(result).toTensor());
      }
      result = std::move(original);
    } else if (result.isTensor()) {
      result = aliases().adopt(std::move(result).toTensor());
    } else if (result.isTensorList()) {
      auto tensors = result.toTensorVector();
      // Its references would look like outside references.
      result = c10::IValue();
      c10::List<at::Tensor> adopted;
      for (at::Tensor& each : tensors) {
        adopted.push_back(aliases().adopt(std::move(each)));
      }
      result = std::move(adopted);
    }
  }

  const c10::OperatorHandle& target_;
  const c10::DispatchKey cpu_key_;
  Stack& stack_;
  const size_t base_;
  c10::SmallVector<c10::IValue, 4> originals_; // one per info().arguments
};

/// Runs an operator that returns an object of a custom class, such as packed
/// weights. The object is on the CPU and may keep arguments, so they are
/// copied.
void run_on_host(
    const c10::OperatorHandle& op,
    const OperatorInfo& info,
    Stack& stack,
    const c10::OperatorHandle& target,
    c10::DispatchKey cpu_key) {
  const auto copied = [](const at::Tensor& tensor) {
    return tensor.defined() ? tensor.cpu() : tensor;
  };
  const size_t base = stack.size() - info.argument_count;
  check_extents(op, info, at::ArrayRef<c10::IValue>(stack).slice(base));
  for (const auto& argument : info.arguments) {
    c10::IValue& value = stack[base + argument.index];
    if (value.isTensor()) {
      value = copied(value.toTensor());
    } else if (value.isTensorList()) {
      c10::List<at::Tensor> copies;
      for (const c10::IValue& each : value.toListRef()) {
        copies.push_back(copied(each.toTensor()));
      }
      value = std::move(copies);
    }
  }
  target.redispatchBoxed(c10::DispatchKeySet(cpu_key), &stack);
}

} // namespace

void run_boxed(
    const c10::OperatorHandle& op,
    Stack* stack,
    const c10::OperatorHandle& target,
    c10::DispatchKey cpu_key) {
  const OperatorInfo& info = info_of(op);
  // Collectives write to their arguments, although their schemas do not declare
  // it.
  const bool is_collective = info.returns_custom_class &&
      op.schema().getNamespace() == std::string_view("c10d");
  TORCH_CHECK_NOT_IMPLEMENTED(
      target.hasComputedKernelForDispatchKey(cpu_key) && !is_collective,
      "Could not run '",
      op.operator_name(),
      "' on device type ",
      kDeviceType,
      ": it has neither a kernel for the device nor a kernel for ",
      cpu_key,
      " that the device could run.");
  if (C10_UNLIKELY(info.returns_custom_class)) {
    if (counts_paths()) {
      count_path(op.operator_name(), DispatchPath::kBoxed);
    }
    run_on_host(op, info, *stack, target, cpu_key);
    return;
  }
  const Widening widening = cpu_key == c10::DispatchKey::CPU
      ? widening_of(op, info, *stack)
      : Widening::kNone;
  if (C10_UNLIKELY(widening == Widening::kByCasts)) {
    run_wider(op, stack);
    return;
  }
  const c10::OperatorHandle* wide =
      C10_UNLIKELY(widening == Widening::kInKernel) ? float32_kernel_of(target)
                                                    : nullptr;
  BoxedCall call(op, wide != nullptr ? *wide : target, cpu_key, info, *stack);
  submit(call);
}

void run_widened(
    const c10::OperatorHandle& op,
    c10::DispatchKeySet,
    Stack* stack) {
  run_boxed(op, stack, op);
}

} // namespace openreg::aten
