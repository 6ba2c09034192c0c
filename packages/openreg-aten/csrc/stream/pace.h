// SPDX-License-Identifier: BSD-3-Clause
// Decides whether a call is enqueued or runs on the calling thread. Operators,
// compiled kernels and copies all follow this rule.
//
// Enqueueing a kernel costs the host about a microsecond, or more if it has to
// wake a worker. In return the host continues while the kernel runs. Large
// operands make this a gain. For small operands it depends on the program,
// which may wait soon, and on the machine, whose cores may be busy: both are
// measured.
#pragma once

#include <c10/core/Device.h>

#include <cstddef>
#include <cstdint>

namespace openreg::aten::pace {

/// Whether OPENREG_LAUNCH_BLOCKING=1 is set: no call is enqueued, so that
/// errors keep their types.
bool is_blocking();

/// Where a call must run, as its caller requests.
enum class Place : uint8_t {
  kAny,    // as decide() returns
  kQueue,  // enqueued: an asynchronous copy
  kInTurn, // on this thread, in stream order
};

enum class Verdict : uint8_t {
  kRun,
  kEnqueue,         // although the stream is idle
  kEnqueueOverWait, // to run, it would have to wait
  kCapture,         // to run, it would end the capture of a graph
};

/// Decides about a call with `bytes` bytes of operands on the current stream of
/// a device. Call it once per operator call. A small call that `may_raise` runs
/// inline if the stream is idle, so that the call itself raises the error.
Verdict
decide(c10::DeviceIndex device, Place place, size_t bytes, bool may_raise);

} // namespace openreg::aten::pace
