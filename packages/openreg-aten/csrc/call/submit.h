// SPDX-License-Identifier: BSD-3-Clause
// The call path: the one way of a call to its device.
//
// As on a device, the host makes the results, enqueues the kernel and goes on.
// It does so if it can know what the results look like, and if the kernel is
// worth it (pace.h). Otherwise the kernel runs at once on the calling thread,
// as if the device had been that fast: a change of threads would take longer.
#pragma once

#include "call/call.h"

namespace openreg::aten {

/// Enqueues a call on the device's current stream, or runs it there; throws
/// what it throws. Afterwards it has its results.
void submit(Call& call);

/// Throws the runtime's error about a call that cannot be captured in a graph,
/// and the reason: the host waits for it, or its results are not known before.
[[noreturn]] void refuse_capture(
    const c10::OperatorHandle& op,
    c10::DeviceIndex device,
    bool host_waits);

} // namespace openreg::aten
