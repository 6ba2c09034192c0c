// SPDX-License-Identifier: BSD-3-Clause
// scaled_dot_product_attention: PyTorch asks the device which kernel to use.
// The device has the CPU's kernels, so it makes the CPU's choice.
#include "ops/attention.h"

#include "base/mechanism.h"

#include <ATen/native/transformers/attention.h>
#include <ATen/ops/_fused_sdp_choice_ops.h>

namespace openreg::aten {
namespace {

/// A CPU tensor with the metadata of `tensor` and no data. The choice looks at
/// nothing else, and is also asked about tensors without storage (fake ones,
/// and those of torch.func).
at::Tensor describe(const at::Tensor& tensor) {
  at::Tensor description = at::detail::make_tensor<c10::TensorImpl>(
      c10::DispatchKeySet(c10::DispatchKey::CPU),
      tensor.dtype(),
      c10::Device(c10::kCPU));
  description.unsafeGetTensorImpl()->set_sizes_and_strides(
      tensor.sym_sizes(), tensor.sym_strides());
  description.set_requires_grad(tensor.requires_grad());
  return description;
}

} // namespace

int64_t choose_attention(
    const at::Tensor& query,
    const at::Tensor& key,
    const at::Tensor& value,
    const std::optional<at::Tensor>& mask,
    double dropout_p,
    bool is_causal,
    std::optional<double> scale,
    bool enable_gqa) {
  const bool masked = mask && mask->defined();
  // Straight to the CPU's kernel: modes and transforms have had their turn.
  return at::_ops::_fused_sdp_choice::redispatch(
      c10::DispatchKeySet(c10::DispatchKey::CPU),
      describe(query),
      describe(key),
      describe(value),
      masked ? std::optional(describe(*mask)) : std::nullopt,
      dropout_p,
      is_causal,
      scale,
      enable_gqa);
}

OPENREG_MECHANISM(
    attention,
    "DispatchStub: _fused_sdp_choice_stub",
    "scaled_dot_product_attention uses the unfused formula") {
  at::native::_fused_sdp_choice_stub.set_privateuse1_dispatch_ptr(
      &choose_attention);
}

} // namespace openreg::aten
