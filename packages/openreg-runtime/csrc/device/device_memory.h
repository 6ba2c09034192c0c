// SPDX-License-Identifier: BSD-3-Clause
// Device memory: its heap, the pools that take blocks from it in stream order,
// and the blocks that processes share.
#pragma once

#include "backend/backend.h"
#include "base/device_state.h"
#include "device/memory_pool.h"
#include "ipc/memory.h"
#include "memory/address_space.h"
#include "memory/block.h"
#include "memory/heap.h"
#include "stream/stream.h"

#include <condition_variable>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace openreg {

class DeviceMemory final : private BlockKeeper {
 public:
  /// `state` and `backend` belong to the device.
  DeviceMemory(
      int index,
      AddressSpace& memory,
      std::size_t capacity,
      DeviceState& state,
      Backend& backend);

  /// A device pointer. Throws orErrorMemoryAllocation.
  void* allocate(std::size_t size);
  /// Frees a block without waiting for work, except for a running copy of its
  /// bytes. Throws orErrorInvalidValue.
  void free(void* pointer);
  /// Allocates a block for later work of `stream`. If there is no room, waits
  /// for pending frees of the pool. Throws orErrorMemoryAllocation, and
  /// orErrorInvalidHandle if the pool was destroyed since it was looked up.
  void* allocate_in_order(std::size_t size, MemoryPool& pool, Stream& stream);
  /// Allocates from the current pool.
  void* allocate_in_order(std::size_t size, Stream& stream);
  /// Frees a block for later calls. Work that `stream` already has may still
  /// use it. Throws orErrorInvalidValue.
  void free_in_order(void* pointer, Stream& stream);
  /// Releases the memory of pools above their thresholds. The caller has waited
  /// for all work.
  void trim_pools();
  /// Calls `use` with the pools, under the lock.
  template <typename Use>
  decltype(auto) with_pools(const Use& use) {
    const std::lock_guard lock(heap_mutex_);
    return use(pools_);
  }
  /// The live block around a pointer of this device. It may belong to another
  /// process.
  std::optional<Block> find(const void* pointer) const;
  /// The block around a pointer. Also finds a block that was freed in stream
  /// order, but that earlier work may still use.
  std::optional<Block> find_enqueued(const void* pointer) const;
  /// See Heap::trace().
  std::optional<Block> trace(const void* pointer) const;

  /// Pins the live block around a pointer of this device.
  std::optional<Pin> pin(const void* pointer);
  /// Like pin(), for enqueued work: also pins a block that a later command of
  /// the stream frees.
  std::optional<Pin> pin_enqueued(const void* pointer);

  /// Allows other processes to open the block around a pointer. Throws
  /// orErrorInvalidValue.
  orIpcMemHandle_t share(const void* pointer);
  /// See ipc::Imports::open().
  void* open_shared(ipc::Offer offer);
  /// See ipc::Imports::close().
  bool close_shared(void* pointer, bool last);

  struct Usage {
    std::size_t used;
    std::size_t requested;
    std::size_t blocks;
    std::size_t capacity;
    std::size_t openings; // of blocks of other processes
  };
  Usage usage();
  /// Limits the memory that can be allocated, up to the device memory.
  void set_capacity(std::size_t capacity);
  /// Frees all blocks. Only pins still use some of them.
  void clear();

 private:
  std::size_t offset_of(const void* pointer) const noexcept;
  std::optional<Block> at(const std::optional<Heap::Block>& block) const;
  std::optional<Block> find_locked(const void* pointer) const;
  std::optional<Block> find_enqueued_locked(const void* pointer) const;
  std::string why_not_freed(const void* pointer) const;
  void check_freeable(void* pointer) const;
  void check_shares() const;
  Failure not_freed(const void* pointer) const;
  Failure no_room(std::size_t size) const;
  std::optional<std::size_t> take(std::size_t size);
  void make_usable(std::size_t offset, std::size_t size);
  std::optional<std::size_t>
  take_from(MemoryPool& pool, std::size_t size, const Stream& stream);
  bool end_block(std::size_t offset);
  void keep_for_others(std::size_t offset);
  bool is_pinned(const void* begin) const;
  void release_spare(std::size_t offset);
  void look_for_freed();
  std::optional<Pin> pin_locked(const std::optional<Block>& block);
  void unpin(const std::byte* begin) noexcept override;
  void wait_until_unpinned(
      std::unique_lock<std::mutex>& lock,
      const void* begin);

  const int index_;
  AddressSpace& memory_;
  DeviceState& state_;
  Backend& backend_;

  mutable std::mutex heap_mutex_;
  Heap heap_;
  ipc::Exports exports_;
  ipc::Imports imports_;
  MemoryPools pools_;
  std::vector<const std::byte*> pins_; // the start of a block for each Pin
  std::condition_variable unpinned_;
};

} // namespace openreg
