// SPDX-License-Identifier: BSD-3-Clause
// The memory part of the C API: allocation, pointers, and what they point to.
#include "error.h"
#include "fault_injection.h"
#include "host_access.h"
#include "host_memory.h"
#include "memory_ranges.h"
#include "process.h"
#include "runtime.h"

#include <algorithm>
#include <string>

namespace openreg {
namespace {

/// What an injected fault does to an allocation.
void inject(orFaultSite site, Device* device) {
  const auto hit =
      fault_injection::next(site, device != nullptr ? device->index() : -1);
  if (!hit) {
    return;
  }
  if (device != nullptr && DeviceState::sticks(hit->error.code)) {
    device->state().fail(hit->error);
  }
  hit->apply();
}

/// The device of a block that is to be freed.
Device& owner(void* pointer) {
  const int index = device_of(pointer);
  if (index < 0) {
    throw Failure(
        orErrorInvalidValue,
        "devPtr " + hex(pointer) + " is not a device pointer");
  }
  return runtime().device(index);
}

void free_block(Device& device, void* pointer) {
  host_access::close(pointer);
  device.free(pointer);
}

} // namespace
} // namespace openreg

using openreg::api_call;
using openreg::check_not_null;
using openreg::Failure;
using openreg::runtime;

extern "C" {

orError_t orMalloc(void** devPtr, size_t size) noexcept {
  return api_call("orMalloc", [&] {
    check_not_null(devPtr, "devPtr");
    *devPtr = nullptr;
    auto& device = runtime().device(openreg::current_device());
    device.state().check();
    if (size > 0) {
      openreg::inject(orFaultMalloc, &device);
      *devPtr = device.allocate(size);
    }
  });
}

orError_t orFree(void* devPtr) noexcept {
  return api_call("orFree", [&] {
    if (devPtr == nullptr) {
      return;
    }
    auto& device = openreg::owner(devPtr);
    // While the process exits, a kernel may never return; kernels reach the
    // memory at another address, so freeing it under one faults nobody.
    if (!openreg::process::exiting()) {
      device.drain();
    }
    openreg::free_block(device, devPtr);
  });
}

orError_t orFreeUnused(void* ptr) noexcept {
  return api_call("orFreeUnused", [&] {
    if (ptr == nullptr) {
      return;
    }
    if (openreg::device_of(ptr) >= 0) {
      openreg::free_block(openreg::owner(ptr), ptr);
    } else {
      openreg::host_memory::free(ptr);
    }
  });
}

orError_t orMallocHost(void** hostPtr, size_t size) noexcept {
  return api_call("orMallocHost", [&] {
    check_not_null(hostPtr, "hostPtr");
    *hostPtr = nullptr;
    runtime();
    if (size > 0) {
      openreg::inject(orFaultMallocHost, nullptr);
      *hostPtr = openreg::host_memory::allocate(size);
    }
  });
}

orError_t orFreeHost(void* hostPtr) noexcept {
  return api_call("orFreeHost", [&] {
    if (hostPtr == nullptr) {
      return;
    }
    if (!openreg::process::exiting()) {
      runtime().drain();
    }
    openreg::host_memory::free(hostPtr);
  });
}

orError_t orMemGetInfo(size_t* free, size_t* total) noexcept {
  return api_call("orMemGetInfo", [&] {
    check_not_null(free, "free");
    check_not_null(total, "total");
    auto& device = runtime().device(openreg::current_device());
    device.state().check();
    const auto usage = device.usage();
    *free = usage.capacity - std::min(usage.used, usage.capacity);
    *total = usage.capacity;
  });
}

orError_t orPointerGetAttributes(
    orPointerAttributes* attributes,
    const void* ptr) noexcept {
  return api_call("orPointerGetAttributes", [&] {
    check_not_null(attributes, "attributes");
    *attributes = {orMemoryTypeUnmanaged, -1, const_cast<void*>(ptr), 0};
    const int device = openreg::device_of(ptr);
    if (device >= 0) {
      if (const auto block = runtime().device(device).find(ptr)) {
        *attributes = {orMemoryTypeDevice, device, block->begin, block->size};
      }
    } else if (const auto block = openreg::host_memory::find(ptr)) {
      *attributes = {
          orMemoryTypeHost,
          openreg::current_device(),
          block->begin,
          block->size};
    }
  });
}

orError_t orMemoryUnprotect(void* devPtr) noexcept {
  return api_call("orMemoryUnprotect", [&] {
    openreg::host_access::open(openreg::check_range("devPtr", devPtr, 0));
  });
}

orError_t orMemoryProtect(void* devPtr) noexcept {
  return api_call("orMemoryProtect", [&] {
    openreg::host_access::close(
        openreg::check_range("devPtr", devPtr, 0).begin);
  });
}

orError_t orGetKernelPointer(void** kernelPtr, const void* devPtr) noexcept {
  return api_call("orGetKernelPointer", [&] {
    check_not_null(kernelPtr, "kernelPtr");
    openreg::check_range("devPtr", devPtr, 0);
    *kernelPtr = const_cast<std::byte*>(
        static_cast<const std::byte*>(devPtr) + runtime().memory().distance());
  });
}

orError_t orGetAddressRange(
    void** begin,
    void** end,
    ptrdiff_t* kernelDistance) noexcept {
  return api_call("orGetAddressRange", [&] {
    check_not_null(begin, "begin");
    check_not_null(end, "end");
    check_not_null(kernelDistance, "kernelDistance");
    *begin = runtime().memory().view(0);
    *end = runtime().memory().end();
    *kernelDistance = runtime().memory().distance();
  });
}

} // extern "C"
