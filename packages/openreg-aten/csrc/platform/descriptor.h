// SPDX-License-Identifier: BSD-3-Clause
// File descriptors of Python.
#pragma once

namespace openreg::aten::platform {

void close_descriptor(int descriptor) noexcept;

} // namespace openreg::aten::platform
