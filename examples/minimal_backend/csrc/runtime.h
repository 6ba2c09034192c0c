// SPDX-License-Identifier: BSD-3-Clause
// The driver's C API in PyTorch's words: errors, devices, streams.
#pragma once

#include <c10/core/Device.h>
#include <c10/core/Storage.h>
#include <c10/core/Stream.h>
#include <openreg/openreg.h>

namespace torch_minimal {

/// Throws what PyTorch expects: torch.OutOfMemoryError or
/// torch.AcceleratorError.
[[noreturn]] void fail(orError_t error);
/// Reports a failure where nothing may be thrown.
void warn(orError_t error) noexcept;
inline void check(orError_t error) {
  if (error != orSuccess) fail(error);
}

/// Whether this is a forked child, which cannot use the devices of its parent.
/// What it destroys belongs to the parent.
bool in_bad_fork() noexcept;

c10::DeviceIndex device_count() noexcept;
c10::DeviceIndex current_device();
/// Makes a device current in this thread and returns the one before it; -1
/// changes nothing. Throws if there is no such device.
c10::DeviceIndex exchange_device(c10::DeviceIndex device);

/// The current stream of this thread for a device; -1 is the current device.
c10::Stream current_stream(c10::DeviceIndex device);
c10::Stream exchange_stream(c10::Stream stream);
orStream_t handle_of(const c10::Stream& stream);
inline orStream_t current_handle(c10::DeviceIndex device) {
  return handle_of(current_stream(device));
}

/// Gives a storage of the device another size; what fits of its bytes stays.
void resize_storage(const c10::Storage& storage, size_t size);

} // namespace torch_minimal
