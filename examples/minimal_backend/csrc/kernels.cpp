// SPDX-License-Identifier: BSD-3-Clause
// Device kernels: an ATen operator, a DispatchStub and a custom operator.
#include <ATen/TensorIterator.h>
#include <ATen/native/CPUFallback.h>
#include <ATen/native/UnaryOps.h>
#include <ATen/ops/abs.h>
#include <ATen/ops/abs_native.h>
#include <ATen/ops/add_ops.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/mul.h>
#include <torch/library.h>

#include <cmath>

#include "fallback.h"
#include "runtime.h"

namespace torch_minimal {
namespace {

// [docs: launch]
float* kernel_pointer(const at::TensorIteratorBase& iter, int operand) {
  void* pointer = nullptr; // the address that kernels use; the host has no access
  check(orGetKernelPointer(&pointer, iter.data_ptr(operand)));
  return static_cast<float*>(pointer);
}

/// Enqueues `function` over the elements of one or two inputs and returns true. Returns
/// false if an operand has gaps, is not float32 or is a CPU scalar.
template <typename Function>
bool launch(at::TensorIteratorBase& iter, Function function) {
  for (int operand = 0; operand < iter.ntensors(); ++operand) {
    if (iter.dtype(operand) != at::kFloat || iter.is_cpu_scalar(operand)) return false;
  }
  const int64_t count = iter.numel();
  if (count == 0) return true;
  if (!iter.is_contiguous()) return false;
  float* out = kernel_pointer(iter, 0);
  const float* a = kernel_pointer(iter, 1);
  const float* b = kernel_pointer(iter, iter.ntensors() - 1);
  check(orLaunchKernel(current_handle(iter.device().index()), [=] {
    for (int64_t i = 0; i < count; ++i) out[i] = function(a[i], b[i]);
  }));
  return true;
}
// [docs: end]

// [docs: add]
/// The kernel for add(out=). PyTorch's add and add_ call it too.
at::Tensor& add_out(const at::Tensor& self, const at::Tensor& other, const at::Scalar& alpha,
                    at::Tensor& out) {
  auto iter = at::TensorIterator::binary_op(out, self, other); // checks, broadcasts, resizes
  if (!alpha.isComplex() && !alpha.isBoolean()) {
    const auto scale = alpha.to<float>();
    if (launch(iter, [scale](float a, float b) { return a + scale * b; })) return out;
  }
  using AddOnHost = at::native::call_fallback_fn<&fallback, at::_ops::add_out>;
  return AddOnHost::call(self, other, alpha, out);
}
// [docs: end]

// [docs: abs]
void abs_kernel(at::TensorIteratorBase& iter) {
  if (launch(iter, [](float a, float) { return std::abs(a); })) return;
  iter.tensor(0).copy_(at::abs(iter.tensor(1).cpu()));
}
// [docs: end]

// [docs: square]
at::Tensor square(const at::Tensor& self) {
  at::Tensor out = at::empty_like(self);
  auto iter = at::TensorIterator::unary_op(out, self);
  if (launch(iter, [](float a, float) { return a * a; })) return out;
  return at::mul(self, self);
}

TORCH_LIBRARY_FRAGMENT(minimal, m) {
  m.def("square(Tensor self) -> Tensor");
}
TORCH_LIBRARY_IMPL(minimal, PrivateUse1, m) {
  m.impl("square", square);
}
// [docs: end]

// [docs: kernels-registration]
TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("add.out", add_out);
  m.impl("abs.out", at::native::abs_out); // calls the device's abs_stub
}
// [docs: end]

} // namespace
} // namespace torch_minimal

namespace at::native {
REGISTER_PRIVATEUSE1_DISPATCH(abs_stub, &torch_minimal::abs_kernel)
} // namespace at::native
