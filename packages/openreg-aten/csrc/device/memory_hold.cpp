// SPDX-License-Identifier: BSD-3-Clause
// Holds on the memory of the two allocators.
#include "device/memory_hold.h"

#include "device/allocator.h"
#include "device/host_allocator.h"

#include <utility>

namespace openreg::aten {

MemoryHold::MemoryHold(const c10::Storage& storage)
    : on_device_(storage.device_type() == c10::kPrivateUse1) {
  const void* data = storage.data();
  if (!on_device_) {
    block_ = hold_pinned(data);
  } else if (hold_block(data)) {
    block_ = const_cast<void*>(data);
  }
}

MemoryHold::MemoryHold(MemoryHold&& other) noexcept
    : block_(std::exchange(other.block_, nullptr)),
      on_device_(other.on_device_) {}

MemoryHold::~MemoryHold() {
  if (block_ == nullptr) {
    return;
  }
  if (on_device_) {
    release_block(block_);
  } else {
    release_pinned(block_);
  }
}

} // namespace openreg::aten
