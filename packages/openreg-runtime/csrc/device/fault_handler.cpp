// SPDX-License-Identifier: BSD-3-Clause
// The explanation of a fault.
#include "device/fault_handler.h"

#include "base/process.h"
#include "device/device.h"
#include "memory/address_space.h"
#include "platform/fault.h"

#include <cstdio>
#include <optional>

namespace openreg {
namespace {

const AddressSpace* g_memory = nullptr;
Device& (*g_device_at)(int index) = nullptr;

/// Where on a device a fault was.
struct FaultPlace {
  int device;
  std::byte* pointer;     // the device pointer
  bool by_kernel_pointer; // or by itself
};

std::optional<FaultPlace> place_of(void* address) {
  const AddressSpace& memory = *g_memory;
  auto* pointer = static_cast<std::byte*>(address);
  if (const int device = memory.device_of(pointer); device >= 0) {
    return FaultPlace{device, pointer, false};
  }
  pointer -= memory.distance();
  if (const int device = memory.device_of(pointer); device >= 0) {
    return FaultPlace{device, pointer, true};
  }
  return std::nullopt;
}

/// An address for printf(), whose "%p" differs between systems.
std::size_t number_of(const void* address) {
  return reinterpret_cast<std::uintptr_t>(address);
}

/// Describes the memory around a device pointer. Returns whether it contains
/// data.
bool describe(char* text, std::size_t size, const FaultPlace& place) {
  std::optional<Block> block;
  if (!process::in_bad_fork()) { // there the heap may stay locked
    Device& device = g_device_at(place.device);
    block = device.memory().find(place.pointer);
    if (!block) {
      block = device.memory().trace(place.pointer);
    }
  }
  if (!block) {
    std::snprintf(text, size, "where no block is allocated");
    return false;
  }
  const auto offset = static_cast<std::size_t>(place.pointer - block->begin);
  const bool inside = offset < block->size;
  const char* state = ", which was freed";
  if (block->live) {
    state = inside ? "" : ", past its end";
  }
  std::snprintf(
      text,
      size,
      "(offset %zu in the block of %zu bytes at 0x%zx%s)",
      offset,
      block->size,
      number_of(block->begin),
      state);
  return block->live && inside;
}

// The faulting instruction belongs to the host or to a kernel and does not hold
// a lock of the runtime, so the ordinary lookup of the block is safe.
void explain(const void* address, const FaultPlace& place) {
  char where[160];
  const bool data = describe(where, sizeof(where), place);
  char text[400];
  int length = 0;
  if (place.by_kernel_pointer) {
    length = std::snprintf(
        text,
        sizeof(text),
        "openreg: a kernel reached 0x%zx, the kernel pointer of 0x%zx on "
        "device openreg:%d %s.\n",
        number_of(address),
        number_of(place.pointer),
        place.device,
        where);
  } else {
    const bool in_kernel = running_stream() != nullptr;
    const char* advice = in_kernel
        ? " In a kernel the data is at orGetKernelPointer()."
        : " Copy the data to the host first.";
    length = std::snprintf(
        text,
        sizeof(text),
        "openreg: %s dereferenced 0x%zx, a pointer to memory of device "
        "openreg:%d %s.%s\n",
        in_kernel ? "a kernel" : "the host",
        number_of(address),
        place.device,
        where,
        data ? advice : "");
  }
  if (length > 0) {
    platform::write_error(text, static_cast<std::size_t>(length));
  }
}

void handle(void* address) {
  if (const auto place = place_of(address)) {
    explain(address, *place);
  }
}

} // namespace

void install_fault_handler(
    const AddressSpace& memory,
    Device& (*device_at)(int index)) {
  g_memory = &memory;
  g_device_at = device_at;
  platform::install_fault_handler(handle);
}

} // namespace openreg
