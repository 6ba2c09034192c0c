// SPDX-License-Identifier: BSD-3-Clause
// Streams: c10::Stream based on the handles of the runtime.
//
// A StreamId is the runtime handle as a number; 0 is the default stream of the
// device. Streams that a program creates come from a pool per device and
// priority, and are never destroyed, as on CUDA.
#pragma once

#include "base/export.h"

#include <openreg/openreg.h>

#include <c10/core/Stream.h>

namespace openreg::aten {

c10::Stream current_stream(c10::DeviceIndex device);
c10::Stream default_stream(c10::DeviceIndex device);
/// Makes `stream` current for its device in this thread, and returns the
/// previous stream.
c10::Stream exchange_stream(c10::Stream stream);
/// Returns the next stream of the pool. A lower number is a higher priority;
/// values outside the range of the runtime are clamped.
c10::Stream stream_from_pool(c10::DeviceIndex device, int priority);
/// Forgets the pool streams, which a reset of the device has destroyed. The
/// default stream becomes current in this thread.
void forget_streams(c10::DeviceIndex device);

/// Returns a stream for a handle that another library owns. Throws unless it
/// belongs to this device. Null is the default stream.
OPENREG_ATEN_API c10::Stream external_stream(
    c10::DeviceIndex device,
    orStream_t handle);
/// Throws unless `stream` belongs to the device that it names.
OPENREG_ATEN_API void check_stream(const c10::Stream& stream);
OPENREG_ATEN_API int priority_of(const c10::Stream& stream);

/// Waits for the work of the current stream of a device. Throws pending kernel
/// errors.
void synchronize_current_stream(c10::DeviceIndex device);

orStream_t handle_of(const c10::Stream& stream);
/// Returns the handle of the current stream of a device.
orStream_t current_handle(c10::DeviceIndex device);

/// Whether the current stream of the device has pending work.
bool is_busy(c10::DeviceIndex device);

/// Call it after this thread has run a command on the current stream of the
/// device. It saves is_busy() a call to the runtime.
void note_inline_run(c10::DeviceIndex device);

/// Whether this thread runs a kernel of the current stream of the device. Calls
/// from that kernel run immediately.
bool runs_here(c10::DeviceIndex device);

} // namespace openreg::aten
