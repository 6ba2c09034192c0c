// SPDX-License-Identifier: BSD-3-Clause
// scaled_dot_product_attention: PyTorch calls the backend to choose the kernel.
// The device has the CPU kernels, so it makes the CPU's choice.
#include "ops/attention.h"

#include "base/keys.h"
#include "base/mechanism.h"

#include <ATen/Context.h>
#include <ATen/native/transformers/attention.h>
#include <ATen/native/transformers/sdp_utils_cpp.h>
#include <ATen/ops/_fused_sdp_choice_ops.h>

namespace openreg::aten {
namespace {

/// Returns a CPU tensor with the metadata of `tensor` and no data. The choice
/// reads nothing else, and must also work for tensors without storage (fake
/// tensors and torch.func tensors).
at::Tensor without_data(const at::Tensor& tensor) {
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
  constexpr auto kMath = static_cast<int64_t>(sdp::SDPBackend::math);
  if (query.is_nested()) {
    return kMath; // as on the CPU; a nested tensor has no strides to describe
  }
  const bool masked = mask && mask->defined();
  try {
    // Calls the CPU kernel directly, because modes and transforms have already
    // run.
    return at::_ops::_fused_sdp_choice::redispatch(
        c10::DispatchKeySet(c10::DispatchKey::CPU),
        without_data(query),
        without_data(key),
        without_data(value),
        masked ? std::optional(without_data(*mask)) : std::nullopt,
        dropout_p,
        is_causal,
        scale,
        enable_gqa);
  } catch (const c10::Error&) {
    // No enabled kernel fits. CUDA has two more, which compute the same.
    const auto& context = at::globalContext();
    if (kIsCuda &&
        (context.userEnabledMemEfficientSDP() ||
         context.userEnabledCuDNNSDP())) {
      return kMath;
    }
    throw;
  }
}

OPENREG_MECHANISM(
    attention,
    "DispatchStub: _fused_sdp_choice_stub",
    "scaled_dot_product_attention uses the unfused formula") {
  set_stub(at::native::_fused_sdp_choice_stub, &choose_attention);
}

} // namespace openreg::aten
