// SPDX-License-Identifier: BSD-3-Clause
// Copies quantizers, some of which hold tensors.
#pragma once

#include <ATen/quantized/Quantizer.h>

#include <functional>

namespace openreg::aten {

/// Returns a copy of `quantizer` with the scales and zero points per channel
/// that `convert` returns. Returns the quantizer itself if it has none.
at::QuantizerPtr convert_quantizer(
    const at::QuantizerPtr& quantizer,
    const std::function<at::Tensor(const at::Tensor&)>& convert);

} // namespace openreg::aten
