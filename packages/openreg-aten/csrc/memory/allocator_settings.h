// SPDX-License-Identifier: BSD-3-Clause
// PYTORCH_ALLOC_CONF as far as PyTorch does not understand it itself.
#pragma once

namespace openreg::aten {

/// Reads the settings of the environment. Throws ValueError for what cannot be
/// read, and warns of what has no effect.
void read_allocator_settings();
/// Makes PyTorch accept CUDA's keys, refuse unknown ones, and warn of settings
/// without effect, also of settings that are made later.
void register_allocator_settings();

} // namespace openreg::aten
