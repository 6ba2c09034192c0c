// SPDX-License-Identifier: BSD-3-Clause
// The process of a device.
#pragma once

#include <openreg/openreg.h>

namespace openreg {

/// Makes the memory of a device, and does what hosts ask for over lanes, until
/// the socket closes. Throws Failure.
void serve_device(int socket, orMemoryView view, orStartExecutor_t start);

} // namespace openreg
