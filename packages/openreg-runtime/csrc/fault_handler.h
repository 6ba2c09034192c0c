// SPDX-License-Identifier: BSD-3-Clause
// Explains the fault when the host dereferences a device pointer.
#pragma once

namespace openreg {

class Runtime;

/// Installs a SIGSEGV handler that names the device and the block on standard
/// error, then passes the signal on to the handler that was there before
/// (Python's faulthandler prints the line), or to the default action.
void install_fault_handler(Runtime& runtime);

} // namespace openreg
