// SPDX-License-Identifier: BSD-3-Clause
// The memory part of the C API: allocation and pointer queries.
#include "activity/recorder.h"
#include "base/device_number.h"
#include "base/error.h"
#include "base/process.h"
#include "base/struct_size.h"
#include "device/memory_ranges.h"
#include "device/peer.h"
#include "device/runtime.h"
#include "failures/failure_injection.h"
#include "memory/host_access.h"
#include "memory/host_memory.h"
#include "settings/config.h"
#include "stream/capture.h"

#include <algorithm>
#include <cstdint>
#include <string>

using namespace openreg;

namespace {

/// Checks a host range that the caller registers or unregisters.
void check_host_range(const void* ptr, std::size_t size) {
  if (size == 0) {
    throw Failure(orErrorInvalidValue, "size must not be 0");
  }
  if (size > UINTPTR_MAX - reinterpret_cast<std::uintptr_t>(ptr)) {
    throw Failure(
        orErrorInvalidValue,
        "size " + std::to_string(size) + " at ptr " + hex(ptr) +
            " exceeds the address space");
  }
  // Rejects device pointers and the kernel pointers, which follow them
  // directly.
  const AddressSpace& memory = runtime().memory();
  const auto begin = reinterpret_cast<std::uintptr_t>(memory.device_mapping(0));
  const auto end =
      reinterpret_cast<std::uintptr_t>(memory.end() + memory.distance());
  const auto address = reinterpret_cast<std::uintptr_t>(ptr);
  if (address < end && size > begin - std::min(address, begin)) {
    throw Failure(
        orErrorInvalidValue,
        std::to_string(size) + " bytes at ptr " + hex(ptr) +
            " overlap device memory: expected host memory");
  }
}

/// Throws orErrorNotSupported if this process cannot map the memory.
void check_reachable(const void* devPtr) {
  if (!config().in_process) {
    throw Failure(
        orErrorNotSupported,
        "devPtr " + hex(devPtr) +
            " is in the device process's memory (OPENREG_ISOLATION=process): "
            "copy it, or send a message to the device's executor");
  }
}

} // namespace

extern "C" {

orError_t orMalloc(void** devPtr, size_t size) noexcept {
  return api_call("orMalloc", [&] {
    check_not_null(devPtr, "devPtr");
    *devPtr = nullptr;
    auto& device = runtime().device(current_device());
    device.state().check();
    if (size > 0) {
      failure_injection::count_allocation(
          orFailureMalloc, device.index(), &device.state());
      *devPtr = device.memory().allocate(size);
      activity::note_block(orActivityMalloc, device.index(), *devPtr, size);
    }
  });
}

orError_t orFree(void* devPtr) noexcept {
  return api_call("orFree", [&] {
    if (devPtr == nullptr) {
      return;
    }
    auto& device = owner_of(devPtr);
    // While the process exits, a kernel may never return. Freeing its memory is
    // safe, because kernels use another address.
    if (!process::exiting()) {
      Capture::check_may_wait(device.index());
      device.drain();
    }
    device.memory().free(devPtr);
    activity::note_block(orActivityFree, device.index(), devPtr, 0);
  });
}

orError_t orFreeUnused(void* ptr) noexcept {
  return api_call("orFreeUnused", [&] {
    if (ptr == nullptr) {
      return;
    }
    const int device = device_of(ptr);
    if (device >= 0) {
      owner_of(ptr).memory().free(ptr);
    } else {
      host_memory::free(ptr);
    }
    activity::note_block(orActivityFree, device, ptr, 0);
  });
}

orError_t orMallocHost(void** hostPtr, size_t size) noexcept {
  return api_call("orMallocHost", [&] {
    check_not_null(hostPtr, "hostPtr");
    *hostPtr = nullptr;
    runtime();
    if (size > 0) {
      failure_injection::count_allocation(orFailureMallocHost, -1, nullptr);
      *hostPtr = host_memory::allocate(size);
      activity::note_block(orActivityMalloc, -1, *hostPtr, size);
    }
  });
}

orError_t orFreeHost(void* hostPtr) noexcept {
  return api_call("orFreeHost", [&] {
    if (hostPtr == nullptr) {
      return;
    }
    if (!process::exiting()) {
      runtime().drain();
    }
    host_memory::free(hostPtr);
    activity::note_block(orActivityFree, -1, hostPtr, 0);
  });
}

orError_t orHostRegister(void* ptr, size_t size, unsigned int flags) noexcept {
  return api_call("orHostRegister", [&] {
    check_not_null(ptr, "ptr");
    check_no_flags(flags);
    runtime();
    check_host_range(ptr, size);
    host_memory::add(ptr, size);
  });
}

orError_t orHostUnregister(void* ptr) noexcept {
  return api_call("orHostUnregister", [&] {
    check_not_null(ptr, "ptr");
    check_host_range(ptr, 1);
    if (!process::exiting()) {
      runtime().drain();
    }
    host_memory::remove(ptr);
  });
}

orError_t orMemGetInfo(size_t* free, size_t* total) noexcept {
  return api_call("orMemGetInfo", [&] {
    check_not_null(free, "free");
    check_not_null(total, "total");
    auto& device = runtime().device(current_device());
    device.state().check();
    const auto usage = device.memory().usage();
    *free = usage.capacity - std::min(usage.used, usage.capacity);
    *total = usage.capacity;
  });
}

orError_t orPointerGetAttributes(
    orPointerAttributes* attributes,
    const void* ptr) noexcept {
  return api_call("orPointerGetAttributes", [&] {
    check_struct_size(attributes, "attributes");
    orPointerAttributes found = OPENREG_POINTER_ATTRIBUTES_INIT;
    found.device = -1;
    found.pointer = const_cast<void*>(ptr);
    const int device = device_of(ptr);
    if (device >= 0) {
      if (const auto block = runtime().device(device).memory().find(ptr)) {
        found.type = orMemoryTypeDevice;
        found.device = device;
        found.pointer = block->begin;
        found.size = block->size;
      }
    } else if (const auto block = host_memory::find(ptr)) {
      found.type = orMemoryTypeHost;
      found.device = current_device();
      found.pointer = block->begin;
      found.size = block->size;
    }
    write_struct(attributes, "attributes", found);
  });
}

orError_t orMemoryUnprotect(void* devPtr) noexcept {
  return api_call("orMemoryUnprotect", [&] {
    // The pin prevents a free of the block during the call.
    const auto pin = pin_block("devPtr", devPtr);
    check_reachable(devPtr);
    host_access::open(runtime().memory(), pin.block());
  });
}

orError_t orMemoryProtect(void* devPtr) noexcept {
  return api_call("orMemoryProtect", [&] {
    const auto block = check_range("devPtr", devPtr, 0);
    host_access::close(runtime().memory(), block.begin);
  });
}

orError_t orGetKernelPointer(void** kernelPtr, const void* devPtr) noexcept {
  return api_call("orGetKernelPointer", [&] {
    check_not_null(kernelPtr, "kernelPtr");
    check_range("devPtr", devPtr, 0);
    check_reachable(devPtr);
    if (const auto* stream = running_stream()) {
      peer::check_access(stream->device(), device_of(devPtr));
    }
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
    *begin = runtime().memory().device_mapping(0);
    *end = runtime().memory().end();
    *kernelDistance = runtime().memory().distance();
  });
}

} // extern "C"
