// SPDX-License-Identifier: BSD-3-Clause
// A second copy of this library in the process: two wheels that each bring one,
// or two paths of one installation.
//
// Each copy has its own devices and knows only its own pointers: it would take
// those of the other for host memory, and fault.
#pragma once

namespace openreg {

/// Throws orErrorNotSupported, with the path of the other copy, if one uses
/// devices in this process. To be called before this copy maps its own.
void check_no_other_copy();

} // namespace openreg
