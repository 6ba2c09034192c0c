// SPDX-License-Identifier: BSD-3-Clause
// Device memory blocks and pins.
#pragma once

#include <cstddef>
#include <utility>

namespace openreg {

struct Block {
  std::byte* begin;
  std::size_t size; // as requested
  bool live = true; // false once it is freed
};

/// Frees blocks, except pinned ones.
class BlockKeeper {
 public:
  virtual void unpin(const std::byte* begin) noexcept = 0;

 protected:
  ~BlockKeeper() = default;
};

/// Prevents the free of a block during the pin's lifetime.
class Pin {
 public:
  Pin(BlockKeeper& keeper, Block block) : keeper_(&keeper), block_(block) {}
  Pin(Pin&& other) noexcept
      : keeper_(std::exchange(other.keeper_, nullptr)), block_(other.block_) {}
  Pin(const Pin&) = delete;
  Pin& operator=(const Pin&) = delete;
  Pin& operator=(Pin&&) = delete;
  ~Pin() {
    if (keeper_ != nullptr) {
      keeper_->unpin(block_.begin);
    }
  }
  const Block& block() const noexcept {
    return block_;
  }

 private:
  BlockKeeper* keeper_;
  Block block_;
};

} // namespace openreg
