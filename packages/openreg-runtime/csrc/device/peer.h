// SPDX-License-Identifier: BSD-3-Clause
// Which devices' memory the kernels of a device may reach.
#pragma once

namespace openreg::peer {

/// Throws orErrorPeerAccessAlreadyEnabled.
void enable(int device, int owner);
/// Throws orErrorPeerAccessNotEnabled.
void disable(int device, int owner);
/// Throws orErrorPeerAccessNotEnabled unless kernels of `device` may reach the
/// memory of `owner`.
void check_access(int device, int owner);
/// Ends the access of a device that is reset, and that of others to it.
void reset(int device);

} // namespace openreg::peer
