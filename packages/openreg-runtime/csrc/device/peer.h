// SPDX-License-Identifier: BSD-3-Clause
// Peer access: the devices whose memory the kernels of a device may use.
#pragma once

namespace openreg::peer {

/// Throws orErrorPeerAccessAlreadyEnabled.
void enable(int device, int owner);
/// Throws orErrorPeerAccessNotEnabled.
void disable(int device, int owner);
/// Throws orErrorPeerAccessNotEnabled unless kernels of `device` may access the
/// memory of `owner`.
void check_access(int device, int owner);
/// Ends the access of a reset device to others, and of others to it.
void reset(int device);

} // namespace openreg::peer
