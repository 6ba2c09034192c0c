// SPDX-License-Identifier: BSD-3-Clause
// The device allocator: caches memory as CUDA's allocator does, so that the
// statistics of torch.accelerator predict the memory use on a GPU.
#pragma once

#include "base/export.h"
#include "base/keys.h"
#include "memory/block.h"
#include "memory/memory_history.h"

#include <c10/core/CachingDeviceAllocator.h>
#include <c10/core/Storage.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

namespace openreg::aten {

/// Returns the allocator that PyTorch registers for the device type.
OPENREG_ATEN_API c10::DeviceAllocator& device_allocator();

/// Allocates a block of `size` bytes and returns its device pointer, null for
/// size 0. Only work that is enqueued later on the current stream of this
/// thread may use it. Throws c10::OutOfMemoryError.
void* allocate_block(c10::DeviceIndex device, size_t size);
/// Allocates a block that the caller can use immediately, on any stream.
void* allocate_idle_block(c10::DeviceIndex device, size_t size);
/// Allocates a block for the kernel that this thread runs on its current
/// stream.
void* allocate_kernel_block(c10::DeviceIndex device, size_t size);
/// Frees a block. No effect in a forked child. Takes the GIL only while stacks
/// of frees are recorded, memory is traced, or OPENREG_UNINITIALIZED is nan.
void free_block(void* pointer) noexcept;

/// Forgets the memory that a device had before a reset.
void abandon_memory(c10::DeviceIndex device);

/// Returns the block that starts at a device pointer, if there is one.
OPENREG_ATEN_API std::optional<BlockInfo> find_block(void* pointer);

/// Limits the memory that the allocator reserves on a device to a fraction of
/// its total, from 0 to 1.
OPENREG_ATEN_API void set_memory_fraction(
    c10::DeviceIndex device,
    double fraction);
/// Returns the fraction that was set, or 1.
OPENREG_ATEN_API double memory_fraction(c10::DeviceIndex device);

/// Starts recording the memory history of all devices, or stops it without
/// `settings`. `clear` drops earlier entries.
OPENREG_ATEN_API void record_memory_history(
    const std::optional<HistorySettings>& settings,
    bool clear);
struct MemorySnapshot {
  std::vector<c10::CachingDeviceAllocator::SegmentInfo> segments;
  std::vector<std::vector<TraceEntry>> traces; // one per device
};
/// Streams are named by their ids.
OPENREG_ATEN_API MemorySnapshot memory_snapshot();

/// Returns a DataPtr that owns a block.
inline c10::DataPtr own_block(c10::DeviceIndex device, void* pointer) {
  return {pointer, pointer, &free_block, c10::Device(kDeviceType, device)};
}

/// Creates a private pool for graphs and returns its id. Replays use its memory
/// at any time, so the memory is reused only after the last graph of the pool
/// is destroyed.
c10::MempoolId_t new_graph_pool();
/// Adds a graph that captures into a pool, on all devices.
void retain_graph_pool(const c10::MempoolId_t& pool);
/// Removes a graph from a pool after the current work of `last` is complete.
/// `last` is the stream of the last replay, or null. When the pool has no
/// graphs, empty_cache() releases its unused memory.
void release_graph_pool(const c10::MempoolId_t& pool, orStream_t last);

/// Adds a user to a pool of one device. A pool exists while it has users.
OPENREG_ATEN_API void retain_pool(
    c10::DeviceIndex device,
    const c10::MempoolId_t& pool);
/// Removes a user that retain_pool() or begin_allocate_to_pool() added.
OPENREG_ATEN_API void release_pool(
    c10::DeviceIndex device,
    const c10::MempoolId_t& pool);
OPENREG_ATEN_API int pool_uses(
    c10::DeviceIndex device,
    const c10::MempoolId_t& pool);
OPENREG_ATEN_API void set_pool_rules(
    c10::DeviceIndex device,
    const c10::MempoolId_t& pool,
    const PoolRules& rules);

/// Which allocations go to a pool.
enum class Routed { kAll, kThread, kStream }; // kStream: the current stream
/// Adds a user to a pool, and takes blocks from it until
/// end_allocate_to_pool(), which leaves the user.
OPENREG_ATEN_API void begin_allocate_to_pool(
    c10::DeviceIndex device,
    const c10::MempoolId_t& pool,
    Routed routed);
OPENREG_ATEN_API void end_allocate_to_pool(
    c10::DeviceIndex device,
    const c10::MempoolId_t& pool);

OPENREG_ATEN_API PoolState
pool_state(c10::DeviceIndex device, const c10::MempoolId_t& pool);
/// Frees all blocks of a pool, and allocates the blocks of a state again.
OPENREG_ATEN_API RestoredPool
restore_pool(c10::DeviceIndex device, const PoolState& state);

/// Whether blocks of the caller come from the cache, or from the runtime.
OPENREG_ATEN_API void set_caching(bool caches);
OPENREG_ATEN_API bool is_caching();

/// Called with the device, the size that the device was asked for, its usable
/// bytes and its free bytes, before c10::OutOfMemoryError is thrown.
using OutOfMemoryObserver =
    std::function<void(c10::DeviceIndex, size_t, size_t, size_t)>;
/// Adds an observer, which is never removed.
OPENREG_ATEN_API void observe_out_of_memory(OutOfMemoryObserver observer);

/// Resizes a storage in place. Keeps the bytes that fit.
OPENREG_ATEN_API void resize_storage(const c10::Storage& storage, size_t size);

} // namespace openreg::aten
