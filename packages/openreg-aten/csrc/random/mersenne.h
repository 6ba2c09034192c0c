// SPDX-License-Identifier: BSD-3-Clause
// Positions of the Mersenne Twister of PyTorch's CPU generators: skips numbers,
// and computes the distance between two engines.
#pragma once

#include <ATen/core/MT19937RNGEngine.h>

#include <cstdint>
#include <optional>

namespace openreg::aten {

/// Advances `engine` by `count` 32-bit numbers. Takes time proportional to
/// `count`, but at most some tens of milliseconds.
void skip(at::mt19937_data_pod& engine, uint64_t count);

/// Returns how many 32-bit numbers `from` must return to become `to`, or
/// nothing if it does not within about `limit` numbers. Takes time proportional
/// to the result.
std::optional<uint64_t> draws_between(
    const at::mt19937_data_pod& from,
    const at::mt19937_data_pod& to,
    uint64_t limit);

} // namespace openreg::aten
