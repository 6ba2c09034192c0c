// SPDX-License-Identifier: BSD-3-Clause
// Whether a call is enqueued, or runs on the calling thread: the one rule,
// which operators, compiled kernels and copies ask.
//
// To enqueue a kernel costs the host about a microsecond, and more if a worker
// has to be woken. In return the host goes on while the kernel runs. For large
// operands that is a gain. For small ones it depends on the program, which may
// wait soon, and on the machine, whose cores may be taken: both are measured.
#pragma once

#include <c10/core/Device.h>

#include <cstddef>
#include <cstdint>

namespace openreg::aten::pace {

/// Whether nothing is enqueued, so that errors keep their types: with
/// OPENREG_LAUNCH_BLOCKING=1.
bool is_blocking();

/// Where a call is to run, as far as its caller knows.
enum class Place : uint8_t {
  kAny,   // decide() decides
  kQueue, // enqueued: an asynchronous copy
  kTurn,  // on this thread, when the stream has come to it
};

enum class Verdict : uint8_t {
  kRun,
  kEnqueue,         // although the stream is idle
  kEnqueueOverWait, // to run, it would have to wait
  kCapture,         // to run, it would end the capture of a graph
};

/// Decides about a call over `bytes` bytes of operands on the current stream of
/// a device. To be asked once per call. A small one that `may_raise` runs here
/// if the stream is idle, so that its exception is the call's.
Verdict
decide(c10::DeviceIndex device, Place place, size_t bytes, bool may_raise);

} // namespace openreg::aten::pace
