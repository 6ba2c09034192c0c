// SPDX-License-Identifier: BSD-3-Clause
// The device process.
#pragma once

#include <openreg/openreg.h>

namespace openreg {

/// Maps the device memory and executes the commands of the lanes until the
/// socket closes. Throws Failure.
void serve_device(int socket, orMemoryView view, orStartExecutor_t start);

} // namespace openreg
