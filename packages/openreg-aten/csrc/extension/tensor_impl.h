// SPDX-License-Identifier: BSD-3-Clause
// Tensors whose values lie in tiles, which strides cannot express.
#pragma once

#include "base/export.h"

#include <ATen/core/Tensor.h>

#include <array>
#include <cstdint>
#include <optional>

namespace openreg::aten {

/// Rows and columns of a tile.
using TileShape = std::array<int64_t, 2>;

/// The shape of the tiles of a tensor, or nothing if it is none with tiles.
OPENREG_ATEN_API std::optional<TileShape> tile_shape(const at::Tensor& tensor);

} // namespace openreg::aten
