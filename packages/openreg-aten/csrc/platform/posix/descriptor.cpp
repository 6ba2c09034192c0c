// SPDX-License-Identifier: BSD-3-Clause
// Descriptors closed by the system.
#include "platform/descriptor.h"

#include <unistd.h>

namespace openreg::aten::platform {

void close_descriptor(int descriptor) noexcept {
  close(descriptor);
}

} // namespace openreg::aten::platform
