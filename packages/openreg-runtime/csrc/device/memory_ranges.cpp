// SPDX-License-Identifier: BSD-3-Clause
// Checks of pointers and ranges.
#include "device/memory_ranges.h"

#include "base/error.h"
#include "device/runtime.h"
#include "memory/host_memory.h"

#include <string>
#include <utility>

namespace openreg {
namespace {

/// Checks a range that begins in pinned memory; false if it does not.
bool check_pinned(
    const char* argument,
    const void* pointer,
    std::size_t count) {
  const auto block = host_memory::find(pointer);
  if (!block) {
    return false;
  }
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
  return true;
}

void check_host(const char* argument, const void* pointer, std::size_t count) {
  check_not_null(pointer, argument);
  const int device = device_of(pointer);
  if (device >= 0) {
    throw Failure(
        orErrorInvalidValue,
        std::string(argument) + " " + hex(pointer) +
            " is a pointer of device " + std::to_string(device) +
            ", but the copy kind expects host memory");
  }
  check_pinned(argument, pointer, count);
}

/// The error for a device pointer outside live blocks.
Failure not_live(const char* argument, const void* pointer, int device) {
  std::string message = std::string(argument) + " " + hex(pointer) +
      " is not in a live block of device " + std::to_string(device);
  if (const auto block = runtime().device(device).memory().trace(pointer)) {
    message += ": the block of " + std::to_string(block->size) + " bytes at " +
        hex(block->begin) + (block->live ? " ends before it" : " was freed");
  }
  return {orErrorInvalidValue, std::move(message)};
}

} // namespace

int device_of(const void* pointer) {
  return runtime().memory().device_of(pointer);
}

Device& owner_of(const void* pointer) {
  const int index = device_of(pointer);
  if (index < 0) {
    throw Failure(
        orErrorInvalidValue,
        "devPtr " + hex(pointer) + " is not a device pointer");
  }
  return runtime().device(index);
}

Block check_range(
    const char* argument,
    const void* pointer,
    std::size_t count) {
  const int device = device_of(pointer);
  if (device < 0) {
    throw Failure(
        orErrorInvalidValue,
        std::string(argument) + " " + hex(pointer) +
            " is not a device pointer");
  }
  // A kernel may use memory that a later command frees.
  const auto block = running_stream() != nullptr
      ? runtime().device(device).memory().find_enqueued(pointer)
      : runtime().device(device).memory().find(pointer);
  if (!block) {
    throw not_live(argument, pointer, device);
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

Pin pin_block(const char* argument, const void* pointer) {
  check_range(argument, pointer, 0);
  const int device = device_of(pointer);
  auto pin = runtime().device(device).memory().pin(pointer);
  if (!pin) { // freed since
    throw not_live(argument, pointer, device);
  }
  return std::move(*pin);
}

void check_kind(orMemcpyKind kind) {
  if (kind < orMemcpyHostToHost || kind > orMemcpyDefault) {
    throw Failure(
        orErrorInvalidValue,
        "kind " + std::to_string(static_cast<int>(kind)) +
            " is not an orMemcpyKind: expected 0 to 4");
  }
}

void check_copy(
    const void* dst,
    std::size_t dst_count,
    const void* src,
    std::size_t src_count,
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
      to_device = device_of(dst) >= 0;
      from_device = device_of(src) >= 0;
      break;
  }
  const auto check =
      [](bool device, const char* argument, const void* p, std::size_t count) {
        if (device) {
          check_range(argument, p, count);
        } else {
          check_host(argument, p, count);
        }
      };
  check(to_device, "dst", dst, dst_count);
  check(from_device, "src", src, src_count);
}

void check_set(const char* argument, const void* pointer, std::size_t count) {
  if (device_of(pointer) >= 0) {
    check_range(argument, pointer, count);
  } else if (!check_pinned(argument, pointer, count)) {
    throw Failure(
        orErrorInvalidValue,
        std::string(argument) + " " + hex(pointer) +
            " is not a device pointer, nor pinned memory: expected memory of "
            "orMalloc, orMallocHost or orHostRegister");
  }
}

} // namespace openreg
