// SPDX-License-Identifier: BSD-3-Clause
// Loaded libraries.
#pragma once

#include <string>

namespace openreg::aten::platform {

/// Returns the file of the library that contains a symbol; empty if it cannot
/// be determined.
std::string library_of(const void* symbol);

} // namespace openreg::aten::platform
