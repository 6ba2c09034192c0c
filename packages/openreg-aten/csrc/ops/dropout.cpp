// SPDX-License-Identifier: BSD-3-Clause
// native_dropout, which dropout calls on a device during training. The CPU
// kernel always draws from the default CPU generator, so this kernel is
// composed of operators that draw from the device generator.
#include "base/keys.h"
#include "base/mechanism.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/zeros_like.h>
#include <torch/library.h>

namespace openreg::aten {
namespace {

std::tuple<at::Tensor, at::Tensor>
native_dropout(const at::Tensor& input, double p, std::optional<bool> train) {
  TORCH_CHECK(
      p >= 0 && p <= 1,
      "dropout probability has to be between 0 and 1, but got ",
      p);
  if (!train.value_or(true) || input.numel() == 0) {
    return {input.clone(), at::ones_like(input, at::kBool)};
  }
  if (p == 1) {
    return {at::zeros_like(input), at::zeros_like(input, at::kBool)};
  }
  // The steps of the CPU's dropout, for the same random numbers.
  const at::Tensor noise = at::empty_like(input).bernoulli_(1 - p).div_(1 - p);
  return {input * noise, noise.ne(0)};
}

/// The CPU's dropout saves its noise, rounded to the input dtype. This function
/// computes it again from the mask: `scale` is the reciprocal of the fraction
/// that is kept.
at::Tensor native_dropout_backward(
    const at::Tensor& gradient,
    const at::Tensor& mask,
    double scale) {
  if (c10::isIntegralType(gradient.scalar_type(), /*includeBool=*/true)) {
    return gradient * mask * scale;
  }
  return gradient * mask.to(gradient.scalar_type()).div_(1 / scale);
}

} // namespace

OPENREG_MECHANISM(
    dropout,
    "aten::native_dropout",
    "dropout draws from the CPU generator") {
  static auto library = OPENREG_LIBRARY_IMPL(aten, kDenseKey);
  library.impl("native_dropout", TORCH_FN(native_dropout));
  library.impl("native_dropout_backward", TORCH_FN(native_dropout_backward));
}

} // namespace openreg::aten
