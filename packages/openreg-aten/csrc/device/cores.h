// SPDX-License-Identifier: BSD-3-Clause
// Whether a core is free for another thread.
#pragma once

namespace openreg::aten {

/// Whether of late more threads of the machine wanted to run than it has cores.
/// Looks a few hundred times a second at most; false where the system does not
/// tell.
bool cores_are_taken();

} // namespace openreg::aten
