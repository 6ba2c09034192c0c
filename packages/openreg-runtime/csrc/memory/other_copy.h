// SPDX-License-Identifier: BSD-3-Clause
// Detects a second copy of this library in the process: two wheels that each
// contain one, or two paths of one installation.
//
// Each copy has its own devices and pointers. It would treat the other copy's
// pointers as host memory, and fault.
#pragma once

namespace openreg {

/// Throws orErrorNotSupported, with the path of the other copy, if one uses
/// devices in this process. Must be called before this copy maps its own
/// devices.
void check_no_other_copy();

} // namespace openreg
