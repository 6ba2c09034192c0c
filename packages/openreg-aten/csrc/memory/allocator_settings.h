// SPDX-License-Identifier: BSD-3-Clause
// The part of PYTORCH_ALLOC_CONF that PyTorch does not parse itself.
#pragma once

namespace openreg::aten {

/// Reads the environment. Throws ValueError for invalid values, and warns about
/// settings without effect.
void read_allocator_settings();
/// Makes PyTorch accept CUDA's keys, reject unknown keys, and warn about
/// settings without effect, including settings that a program changes later.
void register_allocator_settings();

} // namespace openreg::aten
