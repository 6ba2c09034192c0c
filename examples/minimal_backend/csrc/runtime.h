// SPDX-License-Identifier: BSD-3-Clause
// Wraps the driver's C API: errors, devices, streams.
#pragma once

#include <c10/core/Device.h>
#include <c10/core/Storage.h>
#include <c10/core/Stream.h>
#include <openreg/openreg.h>

namespace torch_minimal {

/// Throws the exception that Python sees as torch.OutOfMemoryError or
/// torch.AcceleratorError.
[[noreturn]] void fail(orError_t error);
/// Reports an error as a warning, for code that must not throw.
void warn(orError_t error) noexcept;
inline void check(orError_t error) {
  if (error != orSuccess) fail(error);
}

/// Whether this process was forked after the driver started. It cannot use the devices,
/// and the objects that it destroys belong to the parent process.
bool in_bad_fork() noexcept;

c10::DeviceIndex device_count() noexcept;
c10::DeviceIndex current_device();
/// Sets the current device of this thread and returns the previous one. -1 changes
/// nothing. Throws if the device does not exist.
c10::DeviceIndex exchange_device(c10::DeviceIndex device);

/// The current stream of this thread for a device; -1 is the current device.
c10::Stream current_stream(c10::DeviceIndex device);
c10::Stream exchange_stream(c10::Stream stream);
orStream_t handle_of(const c10::Stream& stream);
inline orStream_t current_handle(c10::DeviceIndex device) {
  return handle_of(current_stream(device));
}

/// Resizes a device storage and keeps the bytes that fit.
void resize_storage(const c10::Storage& storage, size_t size);

} // namespace torch_minimal
