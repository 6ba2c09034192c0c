// SPDX-License-Identifier: BSD-3-Clause
// Loaded libraries.
#pragma once

#include <string>

namespace openreg::aten::platform {

/// Returns the file of the library that contains a symbol; empty if it cannot
/// be determined.
std::string library_of(const void* symbol);

using Function = void (*)();
/// Returns a function of a library that is visible to the whole program, or
/// that this library needs, directly or not; null if there is none.
Function find_function(const char* name) noexcept;

} // namespace openreg::aten::platform
