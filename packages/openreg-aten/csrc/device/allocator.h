// SPDX-License-Identifier: BSD-3-Clause
// The device allocator: caches memory as CUDA's does, so that the figures of
// torch.accelerator predict a GPU's.
#pragma once

#include "export.h"

#include <c10/core/CachingDeviceAllocator.h>
#include <c10/core/Storage.h>

namespace openreg::aten {

/// What PyTorch knows as the allocator of the device type.
OPENREG_ATEN_API c10::DeviceAllocator& device_allocator();

/// A block of `size` bytes, by its device pointer; null for size 0. Throws
/// c10::OutOfMemoryError.
void* allocate_block(c10::DeviceIndex device, size_t size);
/// Gives a block back; does nothing in a forked child. Never takes the GIL.
void free_block(void* pointer) noexcept;

/// Keeps the block that starts at `pointer` from being reused until
/// release_block(); false if there is none.
bool hold_block(const void* pointer);
/// Ends one hold. Never takes the GIL.
void release_block(void* pointer) noexcept;

/// The DataPtr that owns a block.
inline c10::DataPtr own_block(c10::DeviceIndex device, void* pointer) {
  return {
      pointer,
      pointer,
      [](void* block) { free_block(block); },
      c10::Device(c10::kPrivateUse1, device)};
}

/// Changes the size of a storage in place; what fits of its bytes is kept.
void resize_storage(const c10::Storage& storage, size_t size);

} // namespace openreg::aten
