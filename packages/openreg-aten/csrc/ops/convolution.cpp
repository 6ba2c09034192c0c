// SPDX-License-Identifier: BSD-3-Clause
// Convolution: PyTorch dispatches an unknown backend to the *_overrideable
// operators, whose composite kernels only raise an error. Their meta kernels
// are here too, because the strides depend on the CPU's choice of kernel.
#include "base/keys.h"
#include "base/mechanism.h"
#include "kernel/boxed.h"

#include <ATen/core/Tensor.h>
#include <ATen/native/ConvUtils.h>
#include <ATen/ops/convolution_backward.h>
#include <ATen/ops/empty.h>
#include <torch/library.h>

#include <algorithm>
#include <optional>

namespace openreg::aten {
namespace {

constexpr char kConvolution[] = "aten::convolution";
constexpr char kConvolutionBackwardOfPyTorch[] = "aten::convolution_backward";
constexpr char kConvolutionBackward[] =
    "openreg::convolution_backward_overrideable";

// Computes aten::convolution_backward with the bias sizes that follow from the
// weight: output channels come first, or, if transposed, second and per group.
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

/// Returns a CPU tensor without data, for functions that read only metadata.
at::Tensor as_cpu(const at::Tensor& tensor) {
  at::Tensor made = at::detail::make_tensor<c10::TensorImpl>(
      c10::Storage(
          c10::Storage::use_byte_size_t(),
          0,
          c10::DataPtr(nullptr, c10::Device(c10::kCPU))),
      c10::DispatchKeySet(c10::DispatchKey::CPU),
      tensor.dtype());
  made.unsafeGetTensorImpl()->set_sizes_and_strides(
      tensor.sizes(), tensor.strides());
  return made;
}

/// Returns the memory format of the result of the CPU kernel for a convolution.
at::MemoryFormat cpu_memory_format(
    const at::Tensor& input,
    const at::Tensor& weight,
    const std::optional<at::Tensor>& bias,
    at::OptionalIntArrayRef bias_sizes,
    at::IntArrayRef stride,
    at::IntArrayRef padding,
    at::IntArrayRef dilation,
    bool transposed,
    at::IntArrayRef output_padding,
    int64_t groups) {
  const at::Tensor cpu_input = as_cpu(input);
  const at::Tensor cpu_weight = as_cpu(weight);
  const auto symbolic = [](at::IntArrayRef numbers) {
    return c10::fromIntArrayRefSlow(numbers);
  };
  const auto backend = at::native::select_conv_backend(
      cpu_input,
      cpu_weight,
      bias && bias->defined() ? std::optional(as_cpu(*bias)) : std::nullopt,
      symbolic(stride),
      symbolic(padding),
      symbolic(dilation),
      transposed,
      symbolic(output_padding),
      groups,
      bias_sizes ? at::OptionalSymIntArrayRef(symbolic(*bias_sizes))
                 : std::nullopt);
  return at::native::_determine_backend_memory_format(
      cpu_input, cpu_weight, backend);
}

at::Tensor convolution_meta(
    const at::Tensor& input,
    const at::Tensor& weight,
    const std::optional<at::Tensor>& bias,
    at::IntArrayRef stride,
    at::IntArrayRef padding,
    at::IntArrayRef dilation,
    bool transposed,
    at::IntArrayRef output_padding,
    int64_t groups) {
  for (size_t i = 0; transposed && i < output_padding.size(); ++i) {
    TORCH_CHECK(
        output_padding[i] < std::max(stride[i], dilation[i]),
        "output padding must be smaller than either stride or dilation");
  }
  const auto format = cpu_memory_format(
      input,
      weight,
      bias,
      std::nullopt,
      stride,
      padding,
      dilation,
      transposed,
      output_padding,
      groups);
  auto sizes = transposed
      ? at::native::conv_input_size(
            input.sizes(),
            weight.sizes(),
            padding,
            output_padding,
            stride,
            dilation,
            groups)
      : at::native::conv_output_size(
            input.sizes(), weight.sizes(), padding, stride, dilation);
  if (input.size(1) == 0) {
    sizes[1] = 0;
  }
  return at::empty(sizes, input.options().memory_format(format));
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> convolution_backward_meta(
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
  const int64_t channels = grad_output.size(1);
  const auto format = cpu_memory_format(
      input,
      weight,
      std::nullopt,
      at::IntArrayRef(channels),
      stride,
      padding,
      dilation,
      transposed,
      output_padding,
      groups);
  const auto like = [&](const at::Tensor& tensor, bool wanted) {
    return wanted
        ? at::empty(tensor.sizes(), tensor.options().memory_format(format))
        : at::Tensor();
  };
  return {
      like(input, output_mask[0]),
      like(weight, output_mask[1]),
      output_mask[2] ? at::empty({channels}, grad_output.options())
                     : at::Tensor()};
}

/// Throws PyTorch's error for a weight or bias of another type than the input,
/// such as torch.FloatTensor and torch.cuda.FloatTensor.
void check_types(const torch::jit::Stack& stack, size_t base) {
  const at::Tensor& input = stack[base].toTensor();
  for (const size_t place : {1, 2}) {
    const c10::IValue& value = stack[base + place];
    if (value.isNone() || !value.toTensor().defined()) {
      continue;
    }
    const at::Tensor& other = value.toTensor();
    TORCH_CHECK(
        input.options().type_equal(other.options()),
        "Input type (",
        input.toString(),
        ") and ",
        place == 1 ? "weight" : "bias",
        " type (",
        other.toString(),
        ") should be the same");
  }
}

void convolution_of_one_type(
    const c10::OperatorHandle& op,
    torch::jit::Stack* stack) {
  check_types(*stack, stack->size() - op.schema().arguments().size());
  run_as<kConvolution>(op, stack);
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

  static auto library = OPENREG_LIBRARY_IMPL(aten, kDenseKey);
  // [docs: overrideable]
  library.impl(
      "convolution_overrideable",
      torch::CppFunction::makeFromBoxedFunction<&run_as<kConvolution>>());
  library.impl(
      "convolution_backward_overrideable",
      torch::CppFunction::makeFromBoxedFunction<
          &run_as<kConvolutionBackward>>());
  // [docs: end]
  if (kIsCuda) {
    // PyTorch would choose CUDA's kernels instead of the overrideable ones.
    library.impl(
        "convolution",
        torch::CppFunction::makeFromBoxedFunction<&convolution_of_one_type>());
    library.impl(
        "convolution_backward",
        torch::CppFunction::makeFromBoxedFunction<
            &run_as<kConvolutionBackwardOfPyTorch>>());
  }
  static auto meta = MAKE_TORCH_LIBRARY_IMPL(aten, Meta);
  meta.impl("convolution_overrideable", TORCH_FN(convolution_meta));
  meta.impl(
      "convolution_backward_overrideable", TORCH_FN(convolution_backward_meta));
}

} // namespace openreg::aten
