// SPDX-License-Identifier: BSD-3-Clause
// The normal that PyTorch's CPU generator keeps. Normals that are drawn one by
// one are made in pairs, of four numbers of 32 bits, and the second one of a
// pair waits for the next draw. So its value follows from a position in the
// numbers of the Mersenne Twister.
#pragma once

#include <ATen/core/MT19937RNGEngine.h>

#include <cstdint>
#include <optional>

namespace openreg::aten {

/// The count of 32-bit numbers that a pair of normals takes.
constexpr uint64_t kDrawsOfNormals = 4;

/// The normal that a generator at `engine` keeps when it draws one.
double kept_normal_at(const at::mt19937_data_pod& engine);

/// Searches the next `count` numbers of `engine` for the four that `normal` is
/// made of, and returns how many numbers the engine gives up to the last one of
/// these. Takes about as long as drawing the numbers.
std::optional<uint64_t> draws_to_kept_normal(
    const at::mt19937_data_pod& engine,
    uint64_t count,
    double normal);

} // namespace openreg::aten
