// SPDX-License-Identifier: BSD-3-Clause
// Keeps memory alive for enqueued work without keeping a tensor alive.
//
// A tensor may have a Python object, and the thread that drops the last
// reference then needs the GIL, which whoever waits for that thread may hold.
// Work on a stream therefore holds memory, never tensors.
#pragma once

#include <c10/core/Storage.h>

namespace openreg::aten {

/// A freed block that is held goes back to its allocator when the last hold
/// ends.
class MemoryHold {
 public:
  /// Holds the device or pinned memory of `storage`.
  explicit MemoryHold(const c10::Storage& storage);
  MemoryHold(MemoryHold&& other) noexcept;
  MemoryHold(const MemoryHold&) = delete;
  MemoryHold& operator=(const MemoryHold&) = delete;
  MemoryHold& operator=(MemoryHold&&) = delete;
  ~MemoryHold();

  /// False if the memory belongs to neither allocator.
  explicit operator bool() const noexcept {
    return block_ != nullptr;
  }

 private:
  void* block_ = nullptr;
  bool on_device_;
};

} // namespace openreg::aten
