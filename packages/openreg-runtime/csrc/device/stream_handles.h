// SPDX-License-Identifier: BSD-3-Clause
// The handles of streams.
#pragma once

#include "device/device.h"
#include "stream/stream.h"

#include <cstddef>

namespace openreg {

constexpr int kLeastPriority = 0;
constexpr int kGreatestPriority = -3;

/// The stream of a handle. Null means the current device's default stream,
/// orStreamPerThread the stream of the calling thread.
Stream& stream_of(orStream_t stream);
bool is_default(const Stream& stream);
/// The handle of a default stream, created once.
orStream_t default_handle(int device);
/// Creates a stream of the device and returns its handle.
orStream_t make_stream(Device& device, int priority);
/// Throws orErrorInvalidHandle, also for default and per-thread streams.
void destroy_stream(orStream_t stream);
/// Ends all streams of a device except its default stream.
void destroy_streams(Device& device);
std::size_t live_stream_count();

} // namespace openreg
