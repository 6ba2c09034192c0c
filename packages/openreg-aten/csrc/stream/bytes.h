// SPDX-License-Identifier: BSD-3-Clause
// Copies of bytes by the runtime, in the order of a device's current stream.
#pragma once

#include <c10/core/Device.h>

#include <cstddef>

namespace openreg::aten {

/// Copies between any two sides; what failed earlier on the stream is thrown if
/// bytes go to the host. Returns before it is done if `async` and the host's
/// side is pinned.
void copy_bytes(
    c10::DeviceIndex device,
    void* dst,
    const void* src,
    std::size_t size,
    bool async = false);

/// Fills device memory that no work uses.
void fill_idle(
    c10::DeviceIndex device,
    void* dst,
    const void* src,
    std::size_t size);

/// Where this process reads device memory that no work writes: in place, or in
/// `buffer`, which gets a copy if kernels do not reach the memory.
const void* readable(
    c10::DeviceIndex device,
    const void* src,
    std::size_t size,
    void* buffer);

/// Copies between devices, or within one, on the current stream of `device`.
void enqueue_copy(
    c10::DeviceIndex device,
    void* dst,
    const void* src,
    std::size_t size);

} // namespace openreg::aten
