// SPDX-License-Identifier: BSD-3-Clause
// Allocation, pins and frees of blocks.
#include "device/device_memory.h"

#include "base/error.h"
#include "base/process.h"
#include "base/system_thread.h"
#include "memory/host_access.h"
#include "memory/memory_check.h"
#include "platform/mapping.h"
#include "settings/config.h"

#include <algorithm>

namespace openreg {

DeviceMemory::DeviceMemory(
    int index,
    AddressSpace& memory,
    std::size_t capacity,
    DeviceState& state,
    Backend& backend)
    : index_(index),
      memory_(memory),
      state_(state),
      backend_(backend),
      heap_(
          memory.own_span(),
          capacity,
          config().memory_check,
          [this](std::size_t offset, std::size_t size) {
            // At exit frees do not wait, and a running kernel may still use the
            // block.
            if (config().memory_check && !process::exiting()) {
              // Before the pages are released: a later access would take a new
              // page.
              memory_check::close(
                  memory_, memory_.device_mapping(index_) + offset, size);
            }
            backend_.release(offset, size);
          }),
      exports_(memory, index),
      imports_(memory, index),
      pools_(
          index,
          [this](std::size_t offset) {
            return is_pinned(memory_.device_mapping(index_) + offset);
          },
          [this](std::size_t offset) { release_spare(offset); }) {
  if (config().memory_check) {
    memory_check::start(memory, index);
  }
}

void* DeviceMemory::allocate(std::size_t size) {
  const std::lock_guard lock(heap_mutex_);
  const auto offset = take(size);
  if (!offset) {
    throw no_room(size);
  }
  return memory_.device_mapping(index_) + *offset;
}

/// Takes a block from the heap. Pools release spares if necessary.
std::optional<std::size_t> DeviceMemory::take(std::size_t size) {
  look_for_freed();
  auto offset = heap_.allocate(size);
  if (!offset && pools_.release_all()) {
    offset = heap_.allocate(size);
  }
  if (offset) {
    try {
      make_usable(*offset, heap_.footprint(size));
    } catch (...) {
      heap_.free(*offset);
      throw;
    }
  }
  return offset;
}

void DeviceMemory::make_usable(std::size_t offset, std::size_t size) {
  std::byte* begin = memory_.device_mapping(index_) + offset;
  if (const auto committed = platform::commit(begin + memory_.distance(), size);
      !committed) {
    throw Failure(
        orErrorMemoryAllocation,
        "device " + std::to_string(index_) + " cannot allocate " +
            std::to_string(size) + " bytes: " + committed.text());
  }
  if (config().memory_check) {
    memory_check::open(memory_, begin, size);
  }
}

Failure DeviceMemory::no_room(std::size_t size) const {
  const std::size_t used = std::min(heap_.used(), heap_.capacity());
  return {
      orErrorMemoryAllocation,
      "device " + std::to_string(index_) + " cannot allocate " +
          std::to_string(size) +
          " bytes: " + std::to_string(heap_.capacity() - used) + " of its " +
          std::to_string(heap_.capacity()) + " bytes are free" +
          (exports_.keeps()
               ? "; other processes still have blocks open that were freed"
               : "")};
}

void DeviceMemory::free(void* pointer) {
  check_freeable(pointer);
  std::unique_lock lock(heap_mutex_);
  wait_until_unpinned(lock, pointer);
  host_access::close(memory_, pointer);
  look_for_freed();
  if (!end_block(offset_of(pointer))) {
    throw not_freed(pointer);
  }
}

void DeviceMemory::check_freeable(void* pointer) const {
  if (imports_.covers(pointer)) {
    throw Failure(
        orErrorInvalidValue,
        "devPtr " + hex(pointer) +
            " belongs to another process: close it with orIpcCloseMemHandle "
            "instead");
  }
}

Failure DeviceMemory::not_freed(const void* pointer) const {
  return {
      orErrorInvalidValue,
      "devPtr " + hex(pointer) +
          " is not the start of a live block of device " +
          std::to_string(index_) + ": " + why_not_freed(pointer)};
}

/// Ends the live block at `offset`; false if there is none.
bool DeviceMemory::end_block(std::size_t offset) {
  if (!pools_.empty() && pools_.owns(offset)) {
    if (!heap_.keep(offset)) {
      return false; // a spare
    }
    pools_.free(offset, nullptr);
    pools_.trim();
    return true;
  }
  if (!exports_.has(offset)) {
    return heap_.free(offset);
  }
  if (!heap_.keep(offset)) {
    return false; // freed in stream order, later
  }
  if (exports_.remove(offset)) {
    keep_for_others(offset);
  } else {
    heap_.drop(offset);
  }
  return true;
}

/// Hides bytes that the heap keeps for other processes from kernels of this
/// process.
void DeviceMemory::keep_for_others(std::size_t offset) {
  if (!config().memory_check || process::exiting()) {
    return;
  }
  if (const auto block = heap_.trace(offset)) {
    memory_check::hide(
        memory_,
        memory_.device_mapping(index_) + offset,
        heap_.footprint(block->size));
  }
}

/// Returns a block that a pool releases to the heap.
void DeviceMemory::release_spare(std::size_t offset) {
  if (exports_.remove(offset)) {
    keep_for_others(offset);
  } else {
    heap_.drop(offset);
  }
}

/// Returns freed blocks that are reusable by now to the heap.
void DeviceMemory::look_for_freed() {
  if (!exports_.keeps() && !MemoryPools::any_spares()) {
    return; // as nearly always
  }
  for (const std::size_t offset : exports_.take_closed()) {
    heap_.drop(offset);
  }
  pools_.collect();
}

void* DeviceMemory::allocate_in_order(std::size_t size, Stream& stream) {
  return allocate_in_order(
      size,
      with_pools(
          [](MemoryPools& pools) -> MemoryPool& { return pools.current(); }),
      stream);
}

void* DeviceMemory::allocate_in_order(
    std::size_t size,
    MemoryPool& pool,
    Stream& stream) {
  const auto epoch = state_.check();
  std::vector<MemoryPools::Pending> pending;
  const auto check_possible = [&](bool possible) {
    if (!possible) {
      throw Failure(
          orErrorMemoryAllocation,
          "pool cannot allocate " + std::to_string(size) + " bytes: " +
              std::to_string(pool.reserved) + " of its maxSize of " +
              std::to_string(pool.max_size) + " bytes are reserved");
    }
  };
  {
    const std::lock_guard lock(heap_mutex_);
    // Do not wait if no free could make room.
    if (size > heap_.capacity()) {
      throw no_room(size);
    }
    check_possible(
        pool.max_size == 0 || heap_.footprint(size) <= pool.max_size);
    if (const auto offset = take_from(pool, size, stream)) {
      return memory_.device_mapping(index_) + *offset;
    }
    pending = pools_.pending(pool);
  }
  for (const auto& [other, place] : pending) {
    try {
      other->wait_for_place(place, other->deadline());
    } catch (const Failure&) {
      // In a kernel, or after a timeout, use the memory that is free.
    }
  }
  const std::lock_guard lock(heap_mutex_);
  state_.check_since(epoch);
  if (const auto offset = take_from(pool, size, stream)) {
    return memory_.device_mapping(index_) + *offset;
  }
  check_possible(pools_.may_grow(pool, heap_.footprint(size)));
  throw no_room(size);
}

std::optional<std::size_t> DeviceMemory::take_from(
    MemoryPool& pool,
    std::size_t size,
    const Stream& stream) {
  MemoryPools::check_live(pool);
  const std::size_t footprint = heap_.footprint(size);
  if (heap_.used() > heap_.capacity()) { // the limit is lower than it was
    pools_.release_all();
  }
  if (const auto offset = pools_.reuse(pool, footprint, stream)) {
    heap_.revive(*offset, size);
    return offset;
  }
  if (!pools_.may_grow(pool, footprint)) {
    pools_.trim(pool, 0);
    if (!pools_.may_grow(pool, footprint)) {
      return std::nullopt;
    }
  }
  const auto offset = take(size);
  if (offset) {
    try {
      pools_.add(pool, *offset, footprint);
    } catch (...) {
      heap_.free(*offset);
      throw;
    }
  }
  return offset;
}

void DeviceMemory::free_in_order(void* pointer, Stream& stream) {
  check_freeable(pointer);
  const std::lock_guard lock(heap_mutex_);
  const std::size_t offset = offset_of(pointer);
  const auto block = heap_.find(offset);
  if (!block || block->offset != offset) {
    throw not_freed(pointer);
  }
  host_access::close(memory_, pointer);
  if (pools_.owns(offset)) {
    pools_.free(offset, &stream);
  } else {
    pools_.free_foreign(offset, heap_.footprint(block->size), stream);
  }
  heap_.keep(offset);
  look_for_freed();
}

void DeviceMemory::trim_pools() {
  const std::lock_guard lock(heap_mutex_);
  pools_.trim();
}

std::string DeviceMemory::why_not_freed(const void* pointer) const {
  const auto block = at(heap_.find(offset_of(pointer)));
  return block ? "it is inside of the block of " + std::to_string(block->size) +
          " bytes at " + hex(block->begin)
               : "it was freed already, or never allocated";
}

std::optional<Block> DeviceMemory::find_locked(const void* pointer) const {
  if (!imports_.covers(pointer)) {
    return at(heap_.find(offset_of(pointer)));
  }
  const auto block = imports_.find(pointer);
  return block ? std::optional(Block{block->begin, block->size}) : std::nullopt;
}

std::optional<Block> DeviceMemory::find(const void* pointer) const {
  const std::lock_guard lock(heap_mutex_);
  return find_locked(pointer);
}

std::optional<Block> DeviceMemory::trace(const void* pointer) const {
  if (imports_.covers(pointer)) {
    return std::nullopt;
  }
  const std::lock_guard lock(heap_mutex_);
  return at(heap_.trace(offset_of(pointer)));
}

std::optional<Pin> DeviceMemory::pin(const void* pointer) {
  const std::lock_guard lock(heap_mutex_);
  return pin_locked(find_locked(pointer));
}

std::optional<Block> DeviceMemory::find_enqueued_locked(
    const void* pointer) const {
  if (!pools_.empty() && !imports_.covers(pointer)) {
    // The block may have a different size by now, for later work.
    const auto extent = heap_.trace(offset_of(pointer));
    const auto size = extent ? pools_.reachable(extent->offset) : std::nullopt;
    if (size) {
      return Block{memory_.device_mapping(index_) + extent->offset, *size};
    }
  }
  return find_locked(pointer);
}

std::optional<Block> DeviceMemory::find_enqueued(const void* pointer) const {
  const std::lock_guard lock(heap_mutex_);
  return find_enqueued_locked(pointer);
}

std::optional<Pin> DeviceMemory::pin_enqueued(const void* pointer) {
  const std::lock_guard lock(heap_mutex_);
  return pin_locked(find_enqueued_locked(pointer));
}

std::optional<Pin> DeviceMemory::pin_locked(const std::optional<Block>& block) {
  if (!block) {
    return std::nullopt;
  }
  pins_.push_back(block->begin);
  return Pin(*this, *block);
}

void DeviceMemory::unpin(const std::byte* begin) noexcept {
  const std::lock_guard lock(heap_mutex_);
  pins_.erase(std::find(pins_.begin(), pins_.end(), begin));
  unpinned_.notify_all();
}

bool DeviceMemory::is_pinned(const void* begin) const {
  return std::find(pins_.begin(), pins_.end(), begin) != pins_.end();
}

void DeviceMemory::wait_until_unpinned(
    std::unique_lock<std::mutex>& lock,
    const void* begin) {
  if (is_pinned(begin)) {
    const CancellationDeferred deferred;
    unpinned_.wait(lock, [&] { return !is_pinned(begin); });
  }
}

orIpcMemHandle_t DeviceMemory::share(const void* pointer) {
  check_shares();
  if (imports_.covers(pointer)) {
    throw Failure(
        orErrorInvalidValue,
        "devPtr " + hex(pointer) +
            " belongs to another process, and only that process can share it");
  }
  const std::lock_guard lock(heap_mutex_);
  const auto block = heap_.find(offset_of(pointer));
  if (!block) {
    throw Failure(
        orErrorInvalidValue,
        "devPtr " + hex(pointer) + " is not in a live block of device " +
            std::to_string(index_));
  }
  if (pools_.owns(block->offset)) {
    throw Failure(
        orErrorInvalidValue,
        "devPtr " + hex(pointer) +
            " belongs to a memory pool, which cannot be shared: expected a "
            "block of orMalloc");
  }
  return exports_.add(block->offset, block->size);
}

/// Throws orErrorNotSupported if the memory cannot be shared.
void DeviceMemory::check_shares() const {
  if (!config().in_process) {
    throw Failure(
        orErrorNotSupported,
        "device " + std::to_string(index_) +
            " runs in a separate process (OPENREG_ISOLATION=process), whose "
            "memory cannot be shared: copy it to the host");
  }
}

void* DeviceMemory::open_shared(ipc::Offer offer) {
  check_shares();
  const std::lock_guard lock(heap_mutex_);
  return imports_.open(std::move(offer));
}

bool DeviceMemory::close_shared(void* pointer, bool last) {
  std::unique_lock lock(heap_mutex_);
  if (last) {
    wait_until_unpinned(lock, pointer);
  }
  return imports_.close(pointer, last);
}

std::size_t DeviceMemory::offset_of(const void* pointer) const noexcept {
  return static_cast<std::size_t>(
      static_cast<const std::byte*>(pointer) - memory_.device_mapping(index_));
}

std::optional<Block> DeviceMemory::at(
    const std::optional<Heap::Block>& block) const {
  if (!block) {
    return std::nullopt;
  }
  return Block{
      memory_.device_mapping(index_) + block->offset, block->size, block->live};
}

DeviceMemory::Usage DeviceMemory::usage() {
  const std::lock_guard lock(heap_mutex_);
  look_for_freed();
  return {
      heap_.used(),
      heap_.requested(),
      heap_.block_count(),
      heap_.capacity(),
      imports_.openings()};
}

void DeviceMemory::set_capacity(std::size_t capacity) {
  const std::lock_guard lock(heap_mutex_);
  heap_.set_capacity(capacity);
}

void DeviceMemory::clear() {
  const CancellationDeferred deferred;
  std::unique_lock lock(heap_mutex_);
  unpinned_.wait(lock, [this] { return pins_.empty(); });
  host_access::close_all(
      memory_, memory_.device_mapping(index_), memory_.span());
  imports_.clear();
  pools_.clear();
  const auto open = exports_.clear();
  for (const std::size_t offset : open) {
    heap_.keep(offset);
  }
  for (const std::size_t offset : open) {
    keep_for_others(offset);
  }
  heap_.clear();
  heap_.set_capacity(config().device_memory);
}

} // namespace openreg
