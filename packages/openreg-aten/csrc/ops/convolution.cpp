// SPDX-License-Identifier: BSD-3-Clause
// Convolution: PyTorch sends a backend that it does not know to the
// *_overrideable operators, whose composite kernels only raise.
#include "kernel/boxed.h"
#include "mechanism.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/convolution_backward.h>
#include <torch/library.h>

namespace openreg::aten {
namespace {

constexpr char kConvolution[] = "aten::convolution";
constexpr char kConvolutionBackward[] =
    "openreg::convolution_backward_overrideable";

// The same as aten::convolution_backward but for the sizes of the bias, which
// follow from the weight: output channels come first, or, transposed, second
// and per group.
std::tuple<at::Tensor, at::Tensor, at::Tensor> convolution_backward(
    const at::Tensor& grad_output,
    const at::Tensor& input,
    const at::Tensor& weight,
    at::IntArrayRef stride,
    at::IntArrayRef padding,
    at::IntArrayRef dilation,
    bool transposed,
    at::IntArrayRef output_padding,
    int64_t groups,
    std::array<bool, 3> output_mask) {
  const int64_t channels =
      transposed ? weight.size(1) * groups : weight.size(0);
  return at::convolution_backward(
      grad_output,
      input,
      weight,
      at::IntArrayRef(channels),
      stride,
      padding,
      dilation,
      transposed,
      output_padding,
      groups,
      output_mask);
}

} // namespace

OPENREG_MECHANISM(
    convolution,
    "aten::convolution_overrideable",
    "no convolutions") {
  static torch::Library schemas(
      torch::Library::FRAGMENT, "openreg", std::nullopt, __FILE__, __LINE__);
  schemas.def(
      "convolution_backward_overrideable(Tensor grad_output, Tensor input, "
      "Tensor weight, int[] stride, int[] padding, int[] dilation, "
      "bool transposed, int[] output_padding, int groups, "
      "bool[3] output_mask) -> (Tensor, Tensor, Tensor)");
  static auto cpu = MAKE_TORCH_LIBRARY_IMPL(openreg, CPU);
  cpu.impl("convolution_backward_overrideable", TORCH_FN(convolution_backward));

  static auto library = MAKE_TORCH_LIBRARY_IMPL(aten, PrivateUse1);
  // [docs: overrideable]
  library.impl(
      "convolution_overrideable",
      torch::CppFunction::makeFromBoxedFunction<&run_as<kConvolution>>());
  library.impl(
      "convolution_backward_overrideable",
      torch::CppFunction::makeFromBoxedFunction<
          &run_as<kConvolutionBackward>>());
  // [docs: end]
}

} // namespace openreg::aten
