// SPDX-License-Identifier: BSD-3-Clause
// Explains the fault when the host follows a device pointer, or, with
// OPENREG_MEMORY_CHECK=1, when a kernel leaves the live blocks; without it,
// when a kernel touches a closed block of another process.
//
// What a kernel does is a fault too, and no error that the device keeps: a
// kernel is code of this process. The handler could only leave it by a jump,
// which would skip its destructors and keep the locks that it holds, of malloc
// maybe; and letting it go on would need a page with data that is not there.
#pragma once

namespace openreg {

class AddressSpace;
class Device;

/// Installs a SIGSEGV handler that names the device and the block on standard
/// error, then passes the signal on to the handler that was there before
/// (Python's faulthandler prints the line), or to the default action.
void install_fault_handler(
    const AddressSpace& memory,
    Device& (*device_at)(int index));

} // namespace openreg
