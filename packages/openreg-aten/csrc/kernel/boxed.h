// SPDX-License-Identifier: BSD-3-Clause
// The boxed kernel: runs the CPU kernel of any operator on device memory.
#pragma once

#include "base/keys.h"

#include <ATen/core/boxing/KernelFunction.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

namespace openreg::aten {

/// Runs `op`, with its arguments on `stack`. The kernel is that of `target`,
/// which takes the same arguments, for `cpu_key`, a CPU dispatch key. Leaves
/// the results on `stack`.
///
/// Replaces device tensors with CPU tensors over the same memory, and device
/// generators and devices with their CPU counterparts. The device adopts the
/// results.
void run_boxed(
    const c10::OperatorHandle& op,
    torch::jit::Stack* stack,
    const c10::OperatorHandle& target,
    c10::DispatchKey cpu_key = c10::DispatchKey::CPU);

/// A boxed kernel that runs the operator's own CPU kernel.
// [docs: run-cpu-kernel]
template <c10::DispatchKey cpu_key = c10::DispatchKey::CPU>
void run_cpu_kernel(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  run_boxed(op, stack, op, cpu_key);
}
// [docs: end]

/// A boxed kernel that runs the CPU kernel of the operator `name`, for
/// operators without a CPU kernel.
template <const char* name>
void run_as(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  static const auto target =
      c10::Dispatcher::singleton().findSchemaOrThrow(name, "");
  run_boxed(op, stack, target);
}

/// Runs an operator that computes in a wider dtype, for unboxed callers.
void run_widened(
    const c10::OperatorHandle& op,
    c10::DispatchKeySet keys,
    torch::jit::Stack* stack);

/// The same for an operator of at::_ops.
template <typename Operator, typename Schema = typename Operator::schema>
struct WiderCall;
template <typename Operator, typename Result, typename... Args>
struct WiderCall<Operator, Result(Args...)> {
  C10_NOINLINE static Result run(const c10::OperatorHandle& op, Args... args) {
    static const auto kernel =
        c10::BoxedKernel::makeFromFunction<&run_widened>();
    return c10::impl::BoxedKernelWrapper<Result(Args...)>::call(
        kernel, op, kDenseKeySet, static_cast<Args&&>(args)...);
  }
};

} // namespace openreg::aten
