// SPDX-License-Identifier: BSD-3-Clause
// The numbers of devices: which one is current, and whether one exists.
#pragma once

namespace openreg {

/// The device that is current for this thread.
int current_device() noexcept;
/// Makes an existing device current; returns the one that was.
int exchange_current_device(int device) noexcept;

/// Throws orErrorInvalidDevice unless 0 <= index < count.
void check_device(int index, int count);

} // namespace openreg
