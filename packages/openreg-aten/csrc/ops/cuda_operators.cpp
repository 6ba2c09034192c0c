// SPDX-License-Identifier: BSD-3-Clause
// PyTorch's composite kernels call some operators, or some overloads, only if
// the device type is CUDA. The CPU kernels reject these calls or do not exist.
#include "ops/cuda_operators.h"

#include "kernel/boxed.h"
#include "ops/typed/add_operators.h"

#include <string>

namespace openreg::aten {
namespace {

/// torch.softmax(half, dim, dtype=torch.float32) casts in the CUDA kernel.
template <typename Operator>
at::Tensor softmax(const at::Tensor& self, int64_t dim, bool half_to_float) {
  return TypedKernel<Operator>::run(
      half_to_float ? self.to(at::kFloat) : self, dim, false);
}

template <typename Operator>
at::Tensor softmax_backward(
    const at::Tensor& gradient,
    const at::Tensor& output,
    int64_t dim,
    at::ScalarType input_dtype) {
  return TypedKernel<Operator>::run(
             gradient, output, dim, gradient.scalar_type())
      .to(input_dtype);
}

void softmax_out(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  c10::IValue* arguments = &*(stack->end() - 4); // self, dim, cast, out
  if (arguments[2].toBool()) {
    arguments[0] = arguments[0].toTensor().to(at::kFloat);
    arguments[2] = false;
  }
  run_cpu_kernel<>(op, stack);
}

/// Runs a matrix product with a wider result, such as mm.dtype, on operands of
/// the wider dtype, which is also how CUDA accumulates.
void multiply_wider(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const auto& schema = op.schema();
  const auto first =
      stack->end() - static_cast<std::ptrdiff_t>(schema.arguments().size());
  const auto dtype = first + *schema.argumentIndexWithName("out_dtype");
  for (auto operand = first; operand != dtype; ++operand) {
    *operand = operand->toTensor().to(dtype->toScalarType());
  }
  stack->erase(dtype);
  c10::Dispatcher::singleton()
      .findSchemaOrThrow(
          schema.name().c_str(),
          schema.overload_name() == "dtype_out" ? "out" : "")
      .callBoxed(*stack);
}

/// cuSOLVER's drivers compute the same decomposition with other errors. The CPU
/// kernel rejects all of them, so it gets none.
void check_driver(c10::string_view driver) {
  TORCH_CHECK(
      driver == "gesvd" || driver == "gesvdj" || driver == "gesvda",
      "torch.linalg.svd: unknown svd driver ",
      driver,
      " in svd_cusolver computation. Check doc at "
      "https://pytorch.org/docs/stable/generated/torch.linalg.svd.html");
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> svd(
    const at::Tensor& self,
    bool full_matrices,
    bool compute_uv,
    std::optional<c10::string_view> driver) {
  if (driver) {
    check_driver(*driver);
  }
  return TypedKernel<at::_ops::_linalg_svd>::run(
      self, full_matrices, compute_uv, std::nullopt);
}

void svd_out(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  c10::IValue& driver = *(stack->end() - 4); // before U, S and Vh
  if (driver.isString()) {
    check_driver(driver.toStringView());
    driver = c10::IValue();
  }
  run_cpu_kernel<>(op, stack);
}

/// at::ctc_loss then calls the operators that the CPU has.
bool use_no_library(
    const at::Tensor&,
    const at::Tensor&,
    at::IntArrayRef,
    at::IntArrayRef,
    int64_t) {
  return false;
}

bool use_no_library_for_tensors(
    const at::Tensor&,
    const at::Tensor&,
    const at::Tensor&,
    const at::Tensor&,
    int64_t) {
  return false;
}

} // namespace

void add_cuda_operators(torch::Library& library) {
  namespace ops = at::_ops;
  library.impl("_softmax", TORCH_FN(softmax<ops::_softmax>));
  library.impl("_log_softmax", TORCH_FN(softmax<ops::_log_softmax>));
  library.impl(
      "_softmax_backward_data",
      TORCH_FN(softmax_backward<ops::_softmax_backward_data>));
  library.impl(
      "_log_softmax_backward_data",
      TORCH_FN(softmax_backward<ops::_log_softmax_backward_data>));
  for (const char* name : {"_softmax.out", "_log_softmax.out"}) {
    library.impl(
        name, torch::CppFunction::makeFromBoxedFunction<&softmax_out>());
  }
  library.impl("_linalg_svd", TORCH_FN(svd));
  library.impl(
      "_linalg_svd.U", torch::CppFunction::makeFromBoxedFunction<&svd_out>());
  for (const char* name : {"mm", "bmm", "addmm", "baddbmm"}) {
    for (const char* overload : {".dtype", ".dtype_out"}) {
      library.impl(
          (std::string(name) + overload).c_str(),
          torch::CppFunction::makeFromBoxedFunction<&multiply_wider>());
    }
  }
  for (const char* name : {"_use_cudnn_ctc_loss", "_use_miopen_ctc_loss"}) {
    library.impl(name, TORCH_FN(use_no_library));
    library.impl(
        (std::string(name) + ".Tensor").c_str(),
        TORCH_FN(use_no_library_for_tensors));
  }
}

} // namespace openreg::aten
