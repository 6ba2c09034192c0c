// SPDX-License-Identifier: BSD-3-Clause
// Explains a fault: the host dereferenced a device pointer, or a kernel
// accessed memory outside live blocks (OPENREG_MEMORY_CHECK=1) or a closed
// block of another process.
//
// A fault of a kernel ends the process instead of failing the device, because a
// kernel is code of this process. The handler could leave it only by a jump,
// which would skip destructors and keep locks, perhaps of malloc. Continuing
// would need a page with data that does not exist.
#pragma once

namespace openreg {

class AddressSpace;
class Device;

/// Installs a fault handler that prints the device and the block to standard
/// error. Then the fault passes to the previous handler (Python's faulthandler
/// prints the line) or ends the process.
void install_fault_handler(
    const AddressSpace& memory,
    Device& (*device_at)(int index));

} // namespace openreg
