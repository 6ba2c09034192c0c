// SPDX-License-Identifier: BSD-3-Clause
// The device allocator: caches memory as CUDA's does, so that the figures of
// torch.accelerator predict a GPU's.
#pragma once

#include "base/export.h"
#include "memory/block.h"
#include "memory/memory_history.h"

#include <c10/core/CachingDeviceAllocator.h>
#include <c10/core/Storage.h>

#include <optional>
#include <vector>

namespace openreg::aten {

/// What PyTorch knows as the allocator of the device type.
OPENREG_ATEN_API c10::DeviceAllocator& device_allocator();

/// A block of `size` bytes, by its device pointer; null for size 0. It is for
/// work that is enqueued on this thread's current stream later. Throws
/// c10::OutOfMemoryError.
void* allocate_block(c10::DeviceIndex device, size_t size);
/// The same for the caller, who uses the block without a stream.
void* allocate_idle_block(c10::DeviceIndex device, size_t size);
/// The same for the kernel that this thread runs on its current stream.
void* allocate_kernel_block(c10::DeviceIndex device, size_t size);
/// Gives a block back; does nothing in a forked child. Takes the GIL only while
/// stacks of frees are recorded, or memory is traced.
void free_block(void* pointer) noexcept;

/// Forgets the memory that a device had before it was reset.
void abandon_memory(c10::DeviceIndex device);

/// The block that starts at a device pointer, if there is one.
OPENREG_ATEN_API std::optional<BlockInfo> find_block(void* pointer);

/// Limits what the allocator takes from a device to a fraction of its memory,
/// from 0 to 1.
OPENREG_ATEN_API void set_memory_fraction(
    c10::DeviceIndex device,
    double fraction);
/// The fraction that was set, or 1.
OPENREG_ATEN_API double memory_fraction(c10::DeviceIndex device);

/// Starts or, without `settings`, ends the recording of the memory history of
/// all devices. `clear` drops what was recorded before.
OPENREG_ATEN_API void record_memory_history(
    const std::optional<HistorySettings>& settings,
    bool clear);
struct MemorySnapshot {
  std::vector<c10::CachingDeviceAllocator::SegmentInfo> segments;
  std::vector<std::vector<TraceEntry>> traces; // one per device
};
/// Streams are named by their ids.
OPENREG_ATEN_API MemorySnapshot memory_snapshot();

/// The DataPtr that owns a block.
inline c10::DataPtr own_block(c10::DeviceIndex device, void* pointer) {
  return {
      pointer,
      pointer,
      [](void* block) { free_block(block); },
      c10::Device(c10::kPrivateUse1, device)};
}

/// The number of a new private pool of graphs: memory that replays use at any
/// time, so that nobody else gets it before the last graph is gone that has it.
c10::MempoolId_t new_graph_pool();
/// Counts one more graph that captures into a pool, on all devices.
void retain_graph_pool(const c10::MempoolId_t& pool);
/// Counts one less, once the work that `last` has now is completed: the stream
/// of the last replay, or null. Without any, empty_cache() releases the memory
/// that is not in use.
void release_graph_pool(const c10::MempoolId_t& pool, orStream_t last);

/// Changes the size of a storage in place; what fits of its bytes is kept.
void resize_storage(const c10::Storage& storage, size_t size);

} // namespace openreg::aten
