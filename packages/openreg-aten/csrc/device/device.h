// SPDX-License-Identifier: BSD-3-Clause
// The current device, and the addresses of device memory.
#pragma once

#include "base/export.h"

#include <openreg/openreg.h>

#include <c10/core/Device.h>
#include <c10/macros/Macros.h>
#include <c10/util/Exception.h>

#include <atomic>
#include <cstddef>

namespace openreg::aten {

/// Returns the number of devices, or 0 if an environment variable is invalid.
OPENREG_ATEN_API c10::DeviceIndex device_count() noexcept;

/// Throws unless `index` is a device index. `index` is an int, because a
/// DeviceIndex has only eight bits.
OPENREG_ATEN_API void check_device(int index);

OPENREG_ATEN_API c10::DeviceIndex current_device();
OPENREG_ATEN_API void set_device(c10::DeviceIndex index);
/// Makes `index` current and returns the previous device.
OPENREG_ATEN_API c10::DeviceIndex exchange_device(c10::DeviceIndex index);

/// Starts the devices on first use. Throws in a forked child.
OPENREG_ATEN_API void initialize();
/// Whether this process has started the devices. Returns false in a forked
/// child.
OPENREG_ATEN_API bool is_initialized() noexcept;
OPENREG_ATEN_API bool in_bad_fork() noexcept;

/// Returns `index` after a check, or the current device for -1.
c10::DeviceIndex index_or_current(c10::DeviceIndex index);

/// Blocks until all work of a device is complete. Throws pending kernel errors.
OPENREG_ATEN_API void synchronize_device(c10::DeviceIndex index);

/// Returns `device` with the current index if it has none.
c10::Device with_index(c10::Device device);

/// Makes a device current for a scope, for runtime calls that use the current
/// device.
class CurrentDevice {
 public:
  explicit CurrentDevice(c10::DeviceIndex index)
      : previous_(exchange_device(index)), changed_(previous_ != index) {}
  CurrentDevice(const CurrentDevice&) = delete;
  CurrentDevice& operator=(const CurrentDevice&) = delete;
  ~CurrentDevice();

 private:
  c10::DeviceIndex previous_;
  bool changed_;
};

/// The device mapping of this process, which contains all device pointers, and
/// its distance to the kernel mapping, where kernels access the same bytes.
struct AddressRange {
  std::byte* begin;
  std::byte* end;
  std::ptrdiff_t distance;
};
const AddressRange& load_address_range();
inline std::atomic<const AddressRange*> g_address_range{nullptr};
inline const AddressRange& address_range() {
  const auto* range = g_address_range.load(std::memory_order_acquire);
  return C10_LIKELY(range != nullptr) ? *range : load_address_range();
}

/// Whether kernels of this process can access device memory. They cannot if
/// each device runs in a separate process.
bool load_kernels_reach_memory();
inline bool kernels_reach_memory() {
  static const bool value = load_kernels_reach_memory();
  return value;
}
/// Throws if kernels of this process cannot access device memory.
template <typename... Reason>
C10_ALWAYS_INLINE void require_reachable_memory(const Reason&... reason) {
  TORCH_CHECK_NOT_IMPLEMENTED(
      kernels_reach_memory(), "OPENREG_ISOLATION=process: ", reason...);
}
/// Returns the number of resets of a device.
int reset_count(c10::DeviceIndex device);

/// The part of the device mapping that a device process owns.
struct OwnMemory {
  const std::byte* begin = nullptr; // null if this is not a device process
  size_t size = 0;
};
inline OwnMemory g_own_memory;
inline bool is_device_process() {
  return g_own_memory.begin != nullptr;
}
/// Makes this process a device process.
void become_device(const orMemoryView& view);

/// Returns the kernel address of a device pointer. Null stays null.
inline void* to_kernel(const void* pointer) {
  auto* address = static_cast<std::byte*>(const_cast<void*>(pointer));
  return address ? address + address_range().distance : nullptr;
}

inline bool is_device_pointer(const void* pointer) {
  const AddressRange& range = address_range();
  return pointer >= range.begin && pointer < range.end;
}

/// Returns the device pointer of a kernel pointer, or null for host memory.
inline void* to_device(const void* pointer) {
  const AddressRange& range = address_range();
  auto* address =
      static_cast<std::byte*>(const_cast<void*>(pointer)) - range.distance;
  return address >= range.begin && address < range.end ? address : nullptr;
}

} // namespace openreg::aten
