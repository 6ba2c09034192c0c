// SPDX-License-Identifier: BSD-3-Clause
// File descriptors behind opaque handles.
#pragma once

#include "platform/channel.h"
#include "platform/file.h"

namespace openreg::platform {

inline int descriptor_of(const File& file) noexcept {
  return static_cast<int>(file.handle());
}
inline int descriptor_of(const Channel& channel) noexcept {
  return static_cast<int>(channel.handle());
}

/// Called before a file is closed.
void withdraw(const File& file) noexcept;

} // namespace openreg::platform
