// SPDX-License-Identifier: BSD-3-Clause
// The normal number that PyTorch's CPU generator caches. Single normals are
// computed in pairs, from four 32-bit numbers, and the second one of a pair is
// cached for the next draw. Its value therefore follows from a position in the
// sequence of the Mersenne Twister.
#pragma once

#include <ATen/core/MT19937RNGEngine.h>

#include <cstdint>
#include <optional>

namespace openreg::aten {

/// The count of 32-bit numbers from which a pair of normals is computed.
constexpr uint64_t kDrawsOfNormals = 4;

/// Returns the normal that a generator at `engine` caches when it draws a
/// normal.
double kept_normal_at(const at::mt19937_data_pod& engine);

/// Searches the next `count` numbers of `engine` for the four numbers that
/// result in `normal`, and returns the count of numbers up to the last of them.
/// Takes about as long as drawing the numbers.
std::optional<uint64_t> draws_to_kept_normal(
    const at::mt19937_data_pod& engine,
    uint64_t count,
    double normal);

} // namespace openreg::aten
