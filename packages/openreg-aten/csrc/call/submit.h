// SPDX-License-Identifier: BSD-3-Clause
// The call path: every operator call goes through submit().
//
// The host allocates the results, enqueues the kernel and continues, as for a
// GPU. This requires that the shapes of the results can be predicted, and that
// pace.h decides to enqueue. Otherwise the kernel runs immediately on the
// calling thread, because a thread switch would take longer than the kernel.
#pragma once

#include "call/call.h"

namespace openreg::aten {

/// Enqueues a call on the current stream of the device, or runs it there and
/// throws its exception. Afterwards the call holds its results.
void submit(Call& call);

/// Throws the runtime's error about a call that cannot be captured in a graph,
/// and the reason: the host waits for it, or its results are not known before.
/// Returns if another thread has ended the capture, or if a kernel of the
/// captured stream makes the call.
void reject_capture(
    const c10::OperatorHandle& op,
    c10::DeviceIndex device,
    bool host_waits);

} // namespace openreg::aten
