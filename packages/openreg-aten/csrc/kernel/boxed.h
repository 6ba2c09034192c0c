// SPDX-License-Identifier: BSD-3-Clause
// The kernel for everything: runs any operator's CPU kernel on device memory.
#pragma once

#include <ATen/core/boxing/KernelFunction.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

namespace openreg::aten {

/// Runs `op`, with its arguments on `stack`, by the kernel that `target`, which
/// takes the same arguments, has for `cpu_key`: one of the CPU's dispatch keys.
/// Leaves the results on `stack`.
///
/// Device tensors are replaced by CPU tensors over the same memory, generators
/// and devices by the CPU's, and the device adopts the results.
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
/// operators that have none of their own.
template <const char* name>
void run_as(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  static const auto target =
      c10::Dispatcher::singleton().findSchemaOrThrow(name, "");
  run_boxed(op, stack, target);
}

/// The kernel of an operator that computes in a wider dtype, for callers with a
/// kernel in another form.
void run_widened(
    const c10::OperatorHandle& op,
    c10::DispatchKeySet keys,
    torch::jit::Stack* stack);

/// The same for one of at::_ops.
template <typename Operator, typename Schema = typename Operator::schema>
struct WiderCall;
template <typename Operator, typename Result, typename... Args>
struct WiderCall<Operator, Result(Args...)> {
  C10_NOINLINE static Result run(const c10::OperatorHandle& op, Args... args) {
    static const auto kernel =
        c10::BoxedKernel::makeFromFunction<&run_widened>();
    return c10::impl::BoxedKernelWrapper<Result(Args...)>::call(
        kernel,
        op,
        c10::DispatchKeySet(c10::DispatchKey::PrivateUse1),
        static_cast<Args&&>(args)...);
  }
};

} // namespace openreg::aten
