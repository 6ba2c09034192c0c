// SPDX-License-Identifier: BSD-3-Clause
// scaled_dot_product_attention: PyTorch asks the device which kernel to use.
// The device has the CPU's kernels, so it makes the CPU's choice.
#include "kernel/device_views.h"
#include "mechanism.h"

#include <ATen/native/transformers/attention.h>
#include <ATen/ops/_fused_sdp_choice.h>

namespace openreg::aten {
namespace {

int64_t choose(
    const at::Tensor& query,
    const at::Tensor& key,
    const at::Tensor& value,
    const std::optional<at::Tensor>& mask,
    double dropout_p,
    bool is_causal,
    std::optional<double> scale,
    bool enable_gqa) {
  DeviceViews views(query.device().index());
  // The choice depends on whether a gradient is wanted.
  const auto present = [&](const at::Tensor& tensor) {
    at::Tensor view = views.present(tensor, false);
    view.set_requires_grad(tensor.requires_grad());
    return view;
  };
  std::optional<at::Tensor> mask_view;
  if (mask && mask->defined()) {
    mask_view = present(*mask);
  }
  return at::_fused_sdp_choice(
      present(query),
      present(key),
      present(value),
      mask_view,
      dropout_p,
      is_causal,
      scale,
      enable_gqa);
}

} // namespace

OPENREG_MECHANISM(attention, "DispatchStub: _fused_sdp_choice_stub") {
  at::native::_fused_sdp_choice_stub.set_privateuse1_dispatch_ptr(&choose);
}

} // namespace openreg::aten
