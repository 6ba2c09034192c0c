// SPDX-License-Identifier: BSD-3-Clause
// Registration of the autocast rules with PyTorch's dispatcher.
#pragma once

namespace openreg::amp {

/// Registers every rule on AutocastPrivateUse1 and a fallthrough for all other
/// operators. Must be called only once.
///
/// @throws c10::Error if another library has already registered rules.
void register_autocast();

} // namespace openreg::amp
