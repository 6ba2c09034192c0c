// SPDX-License-Identifier: BSD-3-Clause
// Copies bytes with the runtime, in the order of the current stream of a
// device.
#pragma once

#include <c10/core/Device.h>

#include <cstddef>

namespace openreg::aten {

/// Copies between host and device memory in any direction. Throws earlier
/// errors of the stream if the destination is on the host. Returns before the
/// copy is complete if `async` and the host memory is pinned.
void copy_bytes(
    c10::DeviceIndex device,
    void* dst,
    const void* src,
    std::size_t size,
    bool async = false);

/// Fills device memory that no pending work uses.
void fill_idle(
    c10::DeviceIndex device,
    void* dst,
    const void* src,
    std::size_t size);

/// Returns an address at which this process can read device memory that no work
/// writes: the kernel address, or `buffer` with a copy if kernels cannot access
/// the memory.
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
