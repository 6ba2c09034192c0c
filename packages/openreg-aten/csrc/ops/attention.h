// SPDX-License-Identifier: BSD-3-Clause
// Chooses the kernel of scaled_dot_product_attention.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>

namespace openreg::aten {

/// Returns the sdp::SDPBackend that the CPU would choose for these tensors. It
/// reads only metadata, and accepts tensors without memory.
int64_t choose_attention(
    const at::Tensor& query,
    const at::Tensor& key,
    const at::Tensor& value,
    const std::optional<at::Tensor>& mask,
    double dropout_p,
    bool is_causal,
    std::optional<double> scale,
    bool enable_gqa);

} // namespace openreg::aten
