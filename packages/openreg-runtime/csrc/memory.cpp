// SPDX-License-Identifier: BSD-3-Clause
// The memory part of the C API: allocation, copies, pointer attributes.
#include "error.h"
#include "host_access.h"
#include "host_memory.h"
#include "process.h"
#include "runtime.h"

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

namespace openreg {
namespace {

/// The live block that holds [pointer, pointer + count) of device memory.
Device::Block
check_range(const char* argument, const void* pointer, std::size_t count) {
  const int device = runtime().memory().device_of(pointer);
  if (device < 0) {
    throw Failure(
        orErrorInvalidValue,
        std::string(argument) + " " + hex(pointer) +
            " is not a device pointer");
  }
  const auto block = runtime().device(device).find(pointer);
  if (!block) {
    throw Failure(
        orErrorInvalidValue,
        std::string(argument) + " " + hex(pointer) +
            " is not in a live block of device " + std::to_string(device));
  }
  const auto offset = static_cast<std::size_t>(
      static_cast<const std::byte*>(pointer) - block->begin);
  if (offset > block->size || count > block->size - offset) {
    throw Failure(
        orErrorInvalidValue,
        std::to_string(count) + " bytes at offset " + std::to_string(offset) +
            " of " + argument + " pass the end of the block of " +
            std::to_string(block->size) + " bytes at " + hex(block->begin) +
            " on device " + std::to_string(device));
  }
  return *block;
}

void check_host(const char* argument, const void* pointer, std::size_t count) {
  check_not_null(pointer, argument);
  const int device = runtime().memory().device_of(pointer);
  if (device >= 0) {
    throw Failure(
        orErrorInvalidValue,
        std::string(argument) + " " + hex(pointer) +
            " is a pointer of device " + std::to_string(device) +
            ", and the copy kind says host memory");
  }
  if (const auto block = host_memory::find(pointer)) {
    const auto offset = static_cast<std::size_t>(
        static_cast<const std::byte*>(pointer) -
        static_cast<std::byte*>(block->begin));
    if (count > block->size - offset) {
      throw Failure(
          orErrorInvalidValue,
          std::to_string(count) + " bytes at offset " + std::to_string(offset) +
              " of " + argument + " pass the end of the pinned block of " +
              std::to_string(block->size) + " bytes at " + hex(block->begin));
    }
  }
}

bool is_device(const void* pointer) {
  return runtime().memory().device_of(pointer) >= 0;
}

void check_copy(
    const void* dst,
    const void* src,
    std::size_t count,
    orMemcpyKind kind) {
  bool to_device = false;
  bool from_device = false;
  switch (kind) {
    case orMemcpyHostToHost:
      break;
    case orMemcpyHostToDevice:
      to_device = true;
      break;
    case orMemcpyDeviceToHost:
      from_device = true;
      break;
    case orMemcpyDeviceToDevice:
      to_device = from_device = true;
      break;
    case orMemcpyDefault:
      to_device = is_device(dst);
      from_device = is_device(src);
      break;
    default:
      throw Failure(
          orErrorInvalidValue,
          "kind " + std::to_string(static_cast<int>(kind)) +
              " is not an orMemcpyKind: expected 0 to 4");
  }
  const auto check = [count](bool device, const char* argument, const void* p) {
    if (device) {
      check_range(argument, p, count);
    } else {
      check_host(argument, p, count);
    }
  };
  check(to_device, "dst", dst);
  check(from_device, "src", src);
}

/// The device whose default stream orders a synchronous copy.
int device_of_copy(const void* dst, const void* src) {
  const int to = runtime().memory().device_of(dst);
  const int from = runtime().memory().device_of(src);
  return to >= 0 ? to : from >= 0 ? from : current_device();
}

bool asynchronous(const void* pointer) {
  return is_device(pointer) || host_memory::find(pointer).has_value();
}

/// The device of a block that is to be freed.
Device& owner(void* pointer) {
  const int index = runtime().memory().device_of(pointer);
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
    if (size > 0) {
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

orError_t orFreeUnused(void* devPtr) noexcept {
  return api_call("orFreeUnused", [&] {
    if (devPtr != nullptr) {
      openreg::free_block(openreg::owner(devPtr), devPtr);
    }
  });
}

orError_t orMallocHost(void** hostPtr, size_t size) noexcept {
  return api_call("orMallocHost", [&] {
    check_not_null(hostPtr, "hostPtr");
    *hostPtr = nullptr;
    if (size > 0) {
      *hostPtr = openreg::host_memory::allocate(size);
    }
  });
}

orError_t orFreeHost(void* hostPtr) noexcept {
  return api_call("orFreeHost", [&] {
    if (hostPtr != nullptr) {
      openreg::host_memory::free(hostPtr);
    }
  });
}

orError_t
orMemcpy(void* dst, const void* src, size_t count, orMemcpyKind kind) noexcept {
  return api_call("orMemcpy", [&] {
    if (count == 0) {
      return;
    }
    openreg::check_copy(dst, src, count, kind);
    runtime()
        .device(openreg::device_of_copy(dst, src))
        .default_stream()
        .run(openreg::Copy{dst, src, count});
  });
}

orError_t orMemcpyAsync(
    void* dst,
    const void* src,
    size_t count,
    orMemcpyKind kind,
    orStream_t stream) noexcept {
  return api_call("orMemcpyAsync", [&] {
    openreg::Stream& object = openreg::stream_of(stream);
    if (count == 0) {
      return;
    }
    openreg::check_copy(dst, src, count, kind);
    const openreg::Copy copy{dst, src, count};
    if (openreg::asynchronous(dst) && openreg::asynchronous(src)) {
      object.enqueue(copy);
    } else {
      // Pageable host memory: done when the call returns, as in CUDA.
      object.run(copy);
    }
  });
}

orError_t orMemset(void* devPtr, int value, size_t count) noexcept {
  return api_call("orMemset", [&] {
    if (count == 0) {
      return;
    }
    openreg::check_range("devPtr", devPtr, count);
    runtime()
        .device(runtime().memory().device_of(devPtr))
        .default_stream()
        .run(openreg::Fill{devPtr, static_cast<unsigned char>(value), count});
  });
}

orError_t orMemsetAsync(
    void* devPtr,
    int value,
    size_t count,
    orStream_t stream) noexcept {
  return api_call("orMemsetAsync", [&] {
    openreg::Stream& object = openreg::stream_of(stream);
    if (count == 0) {
      return;
    }
    openreg::check_range("devPtr", devPtr, count);
    object.enqueue(
        openreg::Fill{devPtr, static_cast<unsigned char>(value), count});
  });
}

orError_t orMemGetInfo(size_t* free, size_t* total) noexcept {
  return api_call("orMemGetInfo", [&] {
    check_not_null(free, "free");
    check_not_null(total, "total");
    const auto usage = runtime().device(openreg::current_device()).usage();
    *free = usage.capacity - usage.used;
    *total = usage.capacity;
  });
}

orError_t orPointerGetAttributes(
    orPointerAttributes* attributes,
    const void* ptr) noexcept {
  return api_call("orPointerGetAttributes", [&] {
    check_not_null(attributes, "attributes");
    *attributes = {orMemoryTypeUnmanaged, -1, const_cast<void*>(ptr), 0};
    const int device = runtime().memory().device_of(ptr);
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
