// SPDX-License-Identifier: BSD-3-Clause
// Positions in the numbers of a Mersenne Twister, which PyTorch's CPU generator
// draws from: how far one lies behind another, and the one so far behind.
#pragma once

#include <ATen/core/MT19937RNGEngine.h>

#include <cstdint>
#include <optional>

namespace openreg::aten {

/// Moves `engine` on as if it had given `count` numbers of 32 bits. Takes time
/// for `count`, but never more than some tens of milliseconds.
void skip(at::mt19937_data_pod& engine, uint64_t count);

/// How many numbers of 32 bits `from` has to give to become `to`; nothing if it
/// does not within about `limit` of them. Takes time for the result.
std::optional<uint64_t> draws_between(
    const at::mt19937_data_pod& from,
    const at::mt19937_data_pod& to,
    uint64_t limit);

} // namespace openreg::aten
