// SPDX-License-Identifier: BSD-3-Clause
// Which kernel scaled_dot_product_attention takes.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>

namespace openreg::aten {

/// The sdp::SDPBackend that the CPU would take for such tensors. It looks at
/// metadata alone, also of tensors without memory.
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
