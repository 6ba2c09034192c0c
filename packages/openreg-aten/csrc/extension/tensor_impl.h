// SPDX-License-Identifier: BSD-3-Clause
// Tiled tensors, whose memory layout strides cannot express.
#pragma once

#include "base/export.h"

#include <ATen/core/Tensor.h>

#include <array>
#include <cstdint>
#include <optional>

namespace openreg::aten {

/// Rows and columns of a tile.
using TileShape = std::array<int64_t, 2>;

/// Returns the tile shape of a tensor, or nothing if it is not tiled.
OPENREG_ATEN_API std::optional<TileShape> tile_shape(const at::Tensor& tensor);

} // namespace openreg::aten
