// SPDX-License-Identifier: BSD-3-Clause
// Quantizers, of which some hold tensors.
#pragma once

#include <ATen/quantized/Quantizer.h>

#include <functional>

namespace openreg::aten {

/// A quantizer like `quantizer`, with the scales and zero points for its
/// channels that `convert` makes; the same one if it has none.
at::QuantizerPtr convert_quantizer(
    const at::QuantizerPtr& quantizer,
    const std::function<at::Tensor(const at::Tensor&)>& convert);

} // namespace openreg::aten
