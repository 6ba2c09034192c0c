// SPDX-License-Identifier: BSD-3-Clause
// Queries the runtime about devices, and throws PyTorch exceptions.
#include "device/device.h"

#include "base/keys.h"
#include "device/error.h"
#include "device/gil.h"
#include "device/host_wait.h"
#include "device/trace.h"

#include <c10/util/StringUtil.h>

#include <string>

namespace openreg::aten {

c10::DeviceIndex device_count() noexcept {
  int count = 0;
  return orGetDeviceCount(&count) == orSuccess
      ? static_cast<c10::DeviceIndex>(count)
      : c10::DeviceIndex{0};
}

void check_device(int index) {
  int count = 0;
  OPENREG_CHECK(orGetDeviceCount(&count));
  if (C10_LIKELY(index >= 0 && index < count)) {
    return;
  }
  const std::string message = c10::str(
      kErrorName,
      " error: invalid device ordinal: ",
      index,
      " is not a number from 0 to ",
      count - 1,
      " (there are ",
      count,
      " devices)");
  if (kIsCuda) { // an error of CUDA's runtime, which has this number
    constexpr int kInvalidDevice = 101;
    throw c10::AcceleratorError(
        {__func__, __FILE__, __LINE__}, kInvalidDevice, message);
  }
  TORCH_CHECK(false, message);
}

c10::DeviceIndex current_device() {
  int device = 0;
  OPENREG_CHECK(orGetDevice(&device));
  return static_cast<c10::DeviceIndex>(device);
}

void set_device(c10::DeviceIndex index) {
  check_device(index);
  OPENREG_CHECK(orSetDevice(index));
}

c10::DeviceIndex exchange_device(c10::DeviceIndex index) {
  const c10::DeviceIndex previous = current_device();
  if (previous != index) {
    set_device(index);
  }
  return previous;
}

void initialize() {
  OPENREG_CHECK(orInit());
}

bool is_initialized() noexcept {
  int initialized = 0;
  return orIsInitialized(&initialized) == orSuccess && initialized != 0;
}

bool in_bad_fork() noexcept {
  int bad_fork = 0;
  return orIsInBadFork(&bad_fork) == orSuccess && bad_fork != 0;
}

c10::DeviceIndex index_or_current(c10::DeviceIndex index) {
  if (index == -1) {
    return current_device();
  }
  check_device(index);
  return index;
}

void synchronize_device(c10::DeviceIndex index) {
  const CurrentDevice scope(index);
  trace(&c10::impl::PyInterpreterVTable::trace_gpu_device_synchronization);
  note_host_wait();
  const GilRelease without_gil; // the work may need it
  OPENREG_CHECK(orDeviceSynchronize());
}

c10::Device with_index(c10::Device device) {
  return device.has_index() ? device
                            : c10::Device(device.type(), current_device());
}

CurrentDevice::~CurrentDevice() {
  if (!changed_) {
    return;
  }
  const orError_t error = orSetDevice(previous_);
  if (error != orSuccess) {
    warn_runtime_error(error);
  }
}

const AddressRange& load_address_range() {
  static const AddressRange range = [] {
    void* begin = nullptr;
    void* end = nullptr;
    std::ptrdiff_t distance = 0;
    OPENREG_CHECK(orGetAddressRange(&begin, &end, &distance));
    return AddressRange{
        static_cast<std::byte*>(begin), static_cast<std::byte*>(end), distance};
  }();
  g_address_range.store(&range, std::memory_order_release);
  return range;
}

bool load_kernels_reach_memory() {
  int value = 1;
  OPENREG_CHECK(orDeviceGetAttribute(&value, orDevAttrKernelPointers, 0));
  return value != 0;
}

int reset_count(c10::DeviceIndex device) {
  int value = 0;
  OPENREG_CHECK(orDeviceGetAttribute(&value, orDevAttrResetCount, device));
  return value;
}

void become_device(const orMemoryView& view) {
  g_own_memory = {static_cast<const std::byte*>(view.own), view.size};
  static AddressRange range;
  range = {
      static_cast<std::byte*>(view.begin),
      static_cast<std::byte*>(view.end),
      view.distance};
  g_address_range.store(&range, std::memory_order_release);
}

} // namespace openreg::aten
