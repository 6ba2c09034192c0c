// SPDX-License-Identifier: BSD-3-Clause
// The kernel for everything.
#include "kernel/boxed.h"

#include "device/generator.h"
#include "kernel/cpu_aliases.h"
#include "kernel/device_finder.h"
#include "kernel/dispatch_paths.h"
#include "kernel/enqueue.h"
#include "kernel/kernel.h"
#include "kernel/operator_info.h"
#include "kernel/output_metadata.h"
#include "kernel/wider.h"

#include <ATen/Context.h>
#include <ATen/core/List.h>

#include <algorithm>
#include <iterator>
#include <vector>

namespace openreg::aten {
namespace {

using Kind = OperatorInfo::Kind;
using torch::jit::Stack;

class Call {
 public:
  Call(const c10::OperatorHandle& op, const OperatorInfo& info, Stack& stack)
      : op_(op),
        info_(info),
        stack_(stack),
        base_(stack.size() - info_.argument_count),
        device_(find_device()),
        aliases_(device_) {}

  // [docs: boxed-run]
  void run(const c10::OperatorHandle& target, c10::DispatchKey cpu_key) {
    if (C10_UNLIKELY(info_.uses_generator)) {
      prepare_cpu_generator();
    }
    const CallKey key = make_key(cpu_key);
    const auto outputs =
        output_metadata_if_enqueued(op_, info_, key, device_, [&] {
          return Stack(first_argument(), stack_.end());
        });
    if (outputs) {
      resize_written(*outputs);
    }
    originals_.reserve(info_.arguments.size());
    for (const auto& argument : info_.arguments) {
      replace_argument(argument);
    }
    if (outputs) {
      enqueue_with_results(target, *outputs, digest_of(key));
      return;
    }
    count(DispatchPath::kBoxed);
    run_on_current_stream(device_, [&] {
      const KernelScope scope(device_);
      target.redispatchBoxed(c10::DispatchKeySet(cpu_key), &stack_);
    });
    const bool changed = aliases_.write_back();
    adopt_results();
    if (key.usable() && !aliases_.has_changed_bits() && !was_seen(key) &&
        (!changed || returns_all_written())) {
      cache_call(
          key, new_results(), changed ? written() : std::vector<at::Tensor>());
    }
  }
  // [docs: end]

 private:
  Stack::iterator first_argument() {
    return stack_.begin() + static_cast<std::ptrdiff_t>(base_);
  }
  c10::IValue& value(const OperatorInfo::Argument& argument) {
    return stack_[base_ + argument.index];
  }

  c10::DeviceIndex find_device() {
    DeviceFinder finder;
    for (const auto& argument : info_.arguments) {
      const c10::IValue& value = this->value(argument);
      if (value.isNone()) {
        continue;
      }
      switch (argument.kind) {
        case Kind::kTensor:
          finder.see(value.toTensor());
          break;
        case Kind::kTensorList:
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
    if (C10_UNLIKELY(info_.uses_generator)) {
      finder.check_generator();
    }
    return finder.result();
  }

  at::Tensor& alias_tensor(
      const at::Tensor& tensor,
      const OperatorInfo::Argument& argument) {
    at::Tensor& aliased = aliases_.alias_argument(tensor, argument);
    if (C10_UNLIKELY(info_.reads_requires_grad)) {
      aliased.set_requires_grad(tensor.requires_grad());
    }
    return aliased;
  }

  /// Puts into the place of an argument what the CPU's kernel gets for it. The
  /// argument itself is moved aside, without a new reference to any tensor.
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
          c10::List<at::Tensor> aliases;
          for (const c10::IValue& each : original.toListRef()) {
            aliases.push_back(alias_tensor(each.toTensor(), argument));
          }
          value = std::move(aliases);
        }
        break;
      case Kind::kOptionalTensorList: {
        c10::List<std::optional<at::Tensor>> aliases;
        for (const c10::IValue& each : original.toListRef()) {
          aliases.push_back(
              each.isTensor()
                  ? std::optional(alias_tensor(each.toTensor(), argument))
                  : std::nullopt);
        }
        value = std::move(aliases);
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

  /// First of all, since the stream may have to wait for other draws.
  void prepare_cpu_generator() {
    for (const auto& argument : info_.arguments) {
      if (argument.kind == Kind::kGenerator) {
        c10::IValue& value = this->value(argument);
        value = openreg::aten::prepare_cpu_generator(
            device_, value.toOptional<at::Generator>());
      }
    }
  }

  CallKey make_key(c10::DispatchKey cpu_key) const {
    CallKey key(op_, info_);
    if (cpu_key != c10::DispatchKey::CPU) {
      key.refuse();
    }
    for (size_t i = base_; key.usable() && i < stack_.size(); ++i) {
      key.add(stack_[i]);
    }
    return key;
  }

  void enqueue_with_results(
      const c10::OperatorHandle& target,
      const OutputMetadata& outputs,
      uint64_t digest) {
    count(DispatchPath::kEnqueued);
    std::vector<at::Tensor> results = make_results(device_, outputs.made);
    Stack arguments(
        std::make_move_iterator(first_argument()),
        std::make_move_iterator(stack_.end()));
    stack_.resize(base_);
    enqueue(target, device_, aliases_, std::move(arguments), results, digest);
    if (returns_list()) {
      stack_.emplace_back(std::move(results));
      return;
    }
    size_t next = 0;
    for (const int32_t source : info_.returned) {
      if (source >= 0) {
        stack_.push_back(std::move(originals_[static_cast<size_t>(source)]));
      } else {
        stack_.emplace_back(std::move(results[next++]));
      }
    }
  }

  /// Gives written tensors the sizes that the operator would give them.
  void resize_written(const OutputMetadata& outputs) {
    size_t next = 0;
    for (const int32_t source : info_.returned) {
      if (source >= 0 && next < outputs.resized.size()) {
        const auto& argument = info_.arguments[static_cast<size_t>(source)];
        resize_result(value(argument).toTensor(), outputs.resized[next++]);
      }
    }
  }

  /// False if the operator may resize what it does not return.
  bool returns_all_written() const {
    const auto written = std::count_if(
        info_.arguments.begin(),
        info_.arguments.end(),
        [](const auto& argument) { return argument.written; });
    const auto returned = std::count_if(
        info_.returned.begin(), info_.returned.end(), [](int32_t source) {
          return source >= 0;
        });
    return written == returned;
  }

  /// The results that are arguments.
  std::vector<at::Tensor> written() const {
    std::vector<at::Tensor> tensors;
    const size_t first = stack_.size() - info_.returned.size();
    for (size_t i = 0; i < info_.returned.size(); ++i) {
      if (info_.returned[i] >= 0) {
        tensors.push_back(stack_[first + i].toTensor());
      }
    }
    return tensors;
  }

  bool returns_list() const {
    const auto& returns = op_.schema().returns();
    return info_.returned.size() == 1 && info_.returned[0] < 0 &&
        returns[0].type()->kind() == c10::TypeKind::ListType;
  }

  std::vector<at::Tensor> new_results() const {
    if (returns_list()) {
      return stack_.back().toTensorVector();
    }
    std::vector<at::Tensor> results;
    const size_t first = stack_.size() - info_.returned.size();
    for (size_t i = 0; i < info_.returned.size(); ++i) {
      if (info_.returned[i] < 0) {
        results.push_back(stack_[first + i].toTensor());
      }
    }
    return results;
  }

  void count(DispatchPath path) const {
    if (counts_paths()) {
      count_path(op_.operator_name(), path);
    }
  }

  void adopt_results() {
    const size_t first = stack_.size() - info_.returned.size();
    for (size_t i = 0; i < info_.returned.size(); ++i) {
      c10::IValue& result = stack_[first + i];
      if (info_.returned[i] >= 0) {
        c10::IValue& original =
            originals_[static_cast<size_t>(info_.returned[i])];
        if (C10_UNLIKELY(
                result.isTensor() && result.toTensor().is_quantized())) {
          aliases_.replace(original.toTensor(), std::move(result).toTensor());
        }
        result = std::move(original);
      } else if (result.isTensor()) {
        result = aliases_.adopt(std::move(result).toTensor());
      } else if (result.isTensorList()) {
        auto tensors = result.toTensorVector();
        result = c10::IValue(); // the list's references would look like others'
        c10::List<at::Tensor> adopted;
        for (at::Tensor& each : tensors) {
          adopted.push_back(aliases_.adopt(std::move(each)));
        }
        result = std::move(adopted);
      }
    }
  }

  const c10::OperatorHandle& op_;
  const OperatorInfo& info_;
  Stack& stack_;
  const size_t base_;
  const c10::DeviceIndex device_;
  c10::SmallVector<c10::IValue, 4> originals_; // one per info_.arguments
  CpuAliases aliases_;
};

/// Runs an operator that returns an object of a custom class, such as packed
/// weights. The object is the CPU's and may keep arguments, so these are
/// copies.
void run_on_host(
    const OperatorInfo& info,
    Stack& stack,
    const c10::OperatorHandle& target,
    c10::DispatchKey cpu_key) {
  const auto copied = [](const at::Tensor& tensor) {
    return tensor.defined() ? tensor.cpu() : tensor;
  };
  const size_t base = stack.size() - info.argument_count;
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
  TORCH_CHECK_NOT_IMPLEMENTED(
      target.hasComputedKernelForDispatchKey(cpu_key),
      "Could not run '",
      op.operator_name(),
      "' on device type ",
      c10::kPrivateUse1,
      ": it has no kernel for the device, and none for ",
      cpu_key,
      " that the device could run.");
  const OperatorInfo& info = info_of(op);
  if (C10_UNLIKELY(info.returns_custom_class)) {
    if (counts_paths()) {
      count_path(op.operator_name(), DispatchPath::kBoxed);
    }
    run_on_host(info, *stack, target, cpu_key);
  } else if (
      C10_UNLIKELY(
          cpu_key == c10::DispatchKey::CPU &&
          computes_in_refused(op, info, *stack))) {
    run_wider(op, c10::DispatchKeySet(c10::DispatchKey::PrivateUse1), stack);
  } else {
    Call(op, info, *stack).run(target, cpu_key);
  }
}

} // namespace openreg::aten
