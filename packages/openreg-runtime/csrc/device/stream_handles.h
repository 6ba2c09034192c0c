// SPDX-License-Identifier: BSD-3-Clause
// The handles of streams.
#pragma once

#include "device/device.h"
#include "stream/stream.h"

#include <cstddef>

namespace openreg {

constexpr int kLeastPriority = 0;
constexpr int kGreatestPriority = -3;

/// The stream behind a handle; null is the current device's default stream, and
/// orStreamPerThread that of the calling thread.
Stream& stream_of(orStream_t stream);
bool is_default(const Stream& stream);
/// Handles of the default streams, made once.
orStream_t default_handle(int device);
/// A handle of a new stream of the device.
orStream_t make_stream(Device& device, int priority);
/// Throws orErrorInvalidHandle, also for a stream that ends by itself.
void destroy_stream(orStream_t stream);
/// Ends all streams of a device but its default one.
void destroy_streams(Device& device);
std::size_t live_stream_count();

} // namespace openreg
