// SPDX-License-Identifier: BSD-3-Clause
// Turns objects into opaque handles that can be checked.
//
// A handle is a kind, a slot number and a generation, never an address. A
// destroyed, foreign or random handle, or a handle of another kind, is detected
// without accessing memory through it. Objects are recycled, never deleted, so
// a lookup needs no lock and a thread that races with a destroy still sees a
// valid object.
#pragma once

#include "base/error.h"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

namespace openreg {

/// The kind of object that a handle names; no kind is 0.
enum class HandleKind : std::uintptr_t {
  kStream = 1,
  kEvent,
  kFailure,
  kMemPool,
  kGraph
};

constexpr const char* name_of(HandleKind kind) noexcept {
  switch (kind) {
    case HandleKind::kStream:
      return "a stream";
    case HandleKind::kEvent:
      return "an event";
    case HandleKind::kFailure:
      return "an injected failure";
    case HandleKind::kMemPool:
      return "a memory pool";
    case HandleKind::kGraph:
      return "a graph";
  }
  return "something else";
}

template <typename Object, typename Handle, HandleKind kKind>
class HandleTable {
 public:
  Handle insert(Object* object) {
    const std::lock_guard lock(mutex_);
    if (unused_.empty()) {
      grow();
    }
    const std::uint32_t index = unused_.back();
    unused_.pop_back();
    ++live_;
    Slot& slot = at(index);
    slot.object.store(object, std::memory_order_relaxed);
    const std::uint32_t generation = slot.generation.load() + 1; // now odd
    slot.generation.store(generation, std::memory_order_release);
    return encode(index, generation);
  }

  /// The object behind `handle`. Throws orErrorInvalidHandle.
  Object& get(Handle handle, const char* argument) {
    Slot* slot = find(handle);
    if (slot == nullptr) {
      throw Failure(
          orErrorInvalidHandle,
          std::string(argument) + " " + hex(handle) + why_not_live(handle));
    }
    return *slot->object.load(std::memory_order_relaxed);
  }

  /// Ends `handle` and returns its object. Throws orErrorInvalidHandle.
  Object& remove(Handle handle, const char* argument) {
    const std::lock_guard lock(mutex_);
    Object& object = get(handle, argument);
    end(*find(handle), index_of(handle));
    return object;
  }

  /// The object behind `handle`, or null if it is not live.
  Object* find_object(Handle handle) {
    Slot* slot = find(handle);
    return slot != nullptr ? slot->object.load(std::memory_order_relaxed)
                           : nullptr;
  }

  /// Ends `handle`; null if it is not live.
  Object* try_remove(Handle handle) {
    const std::lock_guard lock(mutex_);
    Object* object = find_object(handle);
    if (object != nullptr) {
      end(*find(handle), index_of(handle));
    }
    return object;
  }

  /// Ends the handles of all objects for which `ends` is true.
  template <typename Predicate>
  void remove_if(Predicate&& ends) {
    const std::lock_guard lock(mutex_);
    for (std::uint32_t index = 0; index < kChunk * kChunks; ++index) {
      if (chunks_[index / kChunk].load() == nullptr) {
        return;
      }
      Slot& slot = at(index);
      if (slot.generation.load() % 2 == 1 && ends(*slot.object.load())) {
        end(slot, index);
      }
    }
  }

  std::size_t live_count() {
    const std::lock_guard lock(mutex_);
    return live_;
  }

 private:
  static constexpr std::uint32_t kChunk = 1024;
  static constexpr std::uint32_t kChunks = 1024;
  static constexpr int kIndexBits = 20;
  static constexpr int kKindBits = 4;
  static_assert(sizeof(std::uintptr_t) >= 8, "room for a generation");

  struct Slot {
    std::atomic<std::uint32_t> generation{0}; // odd while live
    std::atomic<Object*> object{nullptr};
  };

  static Handle encode(std::uint32_t index, std::uint32_t generation) {
    const auto bits =
        (static_cast<std::uintptr_t>(generation) << (kKindBits + kIndexBits)) |
        (static_cast<std::uintptr_t>(kKind) << kIndexBits) | index;
    return reinterpret_cast<Handle>(bits);
  }
  static std::string why_not_live(Handle handle) {
    const auto kind = static_cast<HandleKind>(
        (reinterpret_cast<std::uintptr_t>(handle) >> kIndexBits) &
        ((1u << kKindBits) - 1));
    for (const auto other :
         {HandleKind::kStream,
          HandleKind::kEvent,
          HandleKind::kFailure,
          HandleKind::kMemPool,
          HandleKind::kGraph}) {
      if (kind == other && kind != kKind) {
        return std::string(" is not a live handle: it looks like the one of ") +
            name_of(kind) + ", not of " + name_of(kKind);
      }
    }
    return " is not a live handle: it was destroyed, or never created";
  }
  static std::uint32_t index_of(Handle handle) {
    return static_cast<std::uint32_t>(
        reinterpret_cast<std::uintptr_t>(handle) & ((1u << kIndexBits) - 1));
  }

  void end(Slot& slot, std::uint32_t index) {
    slot.generation.fetch_add(1, std::memory_order_release); // now even
    unused_.push_back(index);
    --live_;
  }

  Slot& at(std::uint32_t index) {
    return chunks_[index / kChunk].load(
        std::memory_order_acquire)[index % kChunk];
  }

  Slot* find(Handle handle) {
    const std::uint32_t index = index_of(handle);
    Slot* chunk = chunks_[index / kChunk].load(std::memory_order_acquire);
    if (chunk == nullptr) {
      return nullptr;
    }
    Slot& slot = chunk[index % kChunk];
    const std::uint32_t generation =
        slot.generation.load(std::memory_order_acquire);
    const bool live = generation % 2 == 1;
    return live && encode(index, generation) == handle ? &slot : nullptr;
  }

  void grow() {
    for (std::uint32_t chunk = 0; chunk < kChunks; ++chunk) {
      if (chunks_[chunk].load() == nullptr) {
        chunks_[chunk].store(new Slot[kChunk], std::memory_order_release);
        for (std::uint32_t i = kChunk; i-- > 0;) {
          unused_.push_back(chunk * kChunk + i);
        }
        return;
      }
    }
    throw Failure(
        orErrorMemoryAllocation,
        "too many handles: at most " + std::to_string(kChunk * kChunks));
  }

  std::mutex mutex_;
  std::array<std::atomic<Slot*>, kChunks> chunks_{};
  std::vector<std::uint32_t> unused_;
  std::size_t live_ = 0;
};

} // namespace openreg
