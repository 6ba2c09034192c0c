// SPDX-License-Identifier: BSD-3-Clause
// Streams: c10::Stream over the runtime's handles.
//
// A StreamId is the runtime's handle as a number; 0 is the default stream of
// the device. Streams that users ask for come from a pool per device and
// priority, and live as long as the process, as CUDA's do.
#pragma once

#include "base/export.h"

#include <openreg/openreg.h>

#include <c10/core/Stream.h>

namespace openreg::aten {

c10::Stream current_stream(c10::DeviceIndex device);
c10::Stream default_stream(c10::DeviceIndex device);
/// Makes `stream` current for its device in this thread; returns the one that
/// was.
c10::Stream exchange_stream(c10::Stream stream);
/// The next stream of the pool. A greater priority is a smaller number; values
/// outside the runtime's range are clamped.
c10::Stream stream_from_pool(c10::DeviceIndex device, int priority);
/// Forgets the pool's streams, which a reset of the device has ended. Its
/// default stream becomes the current one of this thread.
void forget_streams(c10::DeviceIndex device);

/// The stream of a handle that another library made, and keeps alive. Throws
/// unless it is one of this device; null is the default stream.
OPENREG_ATEN_API c10::Stream external_stream(
    c10::DeviceIndex device,
    orStream_t handle);
/// Throws unless `stream` is one of the device that it names.
OPENREG_ATEN_API void check_stream(const c10::Stream& stream);
OPENREG_ATEN_API int priority_of(const c10::Stream& stream);

/// Waits for the work of a device's current stream. Throws what a kernel left.
void synchronize_current_stream(c10::DeviceIndex device);

orStream_t handle_of(const c10::Stream& stream);
/// The handle of the current stream of a device.
orStream_t current_handle(c10::DeviceIndex device);

/// Whether the device's current stream has work.
bool is_busy(c10::DeviceIndex device);

/// To be called after this thread has run a command on the device's current
/// stream: is_busy() then need not ask the runtime because of that command.
void note_inline_run(c10::DeviceIndex device);

/// Whether this thread runs a kernel of the device's current stream: what
/// that kernel calls runs at once.
bool runs_here(c10::DeviceIndex device);

} // namespace openreg::aten
