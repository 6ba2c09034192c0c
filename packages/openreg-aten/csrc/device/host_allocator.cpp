// SPDX-License-Identifier: BSD-3-Clause
// The allocator of pinned host memory.
//
// A block that enqueued work holds is freed when the last hold ends.
#include "device/host_allocator.h"

#include "device/error.h"
#include "device/stream.h"
#include "mechanism.h"

#include <ATen/core/CachingHostAllocator.h>

#include <cstring>
#include <mutex>
#include <unordered_map>

namespace openreg::aten {
namespace {

class HostAllocator final : public at::HostAllocator {
 public:
  at::DataPtr allocate(size_t size) override {
    void* pointer = nullptr;
    OPENREG_CHECK(orMallocHost(&pointer, size));
    if (pointer != nullptr) {
      const std::lock_guard lock(mutex_);
      blocks_.emplace(pointer, Block{size});
      stats_.num_host_alloc += 1;
      increase(size);
    }
    return {pointer, pointer, &free_block, c10::Device(c10::kCPU)};
  }
  at::DeleterFnPtr raw_deleter() const override {
    return &free_block;
  }
  void copy_data(void* dst, const void* src, std::size_t count) const override {
    std::memcpy(dst, src, count);
  }

  bool record_event(void* pointer, void*, c10::Stream stream) override {
    void* block = hold(pointer);
    if (block == nullptr) {
      return false;
    }
    // As the cleanup of a kernel, which a failed device runs too.
    const orError_t error =
        orLaunchKernel(handle_of(stream), [](void*) {}, block, &release_pinned);
    if (error != orSuccess) {
      release_pinned(block);
    }
    OPENREG_CHECK(error);
    return true;
  }
  void empty_cache() override {}
  at::HostStats get_stats() override {
    const std::lock_guard lock(mutex_);
    return stats_;
  }
  void reset_accumulated_stats() override {
    const std::lock_guard lock(mutex_);
    stats_.allocations.reset_accumulated();
    stats_.allocated_bytes.reset_accumulated();
    stats_.active_requests.reset_accumulated();
    stats_.active_bytes.reset_accumulated();
    stats_.num_host_alloc = 0;
    stats_.num_host_free = 0;
  }
  void reset_peak_stats() override {
    const std::lock_guard lock(mutex_);
    stats_.allocations.reset_peak();
    stats_.allocated_bytes.reset_peak();
    stats_.active_requests.reset_peak();
    stats_.active_bytes.reset_peak();
  }

  void free(void* pointer) noexcept {
    const std::lock_guard lock(mutex_);
    const auto block = blocks_.find(pointer);
    if (block != blocks_.end() && block->second.holds > 0) {
      block->second.freed = true;
    } else if (block != blocks_.end()) {
      erase(block);
    }
  }

  void* hold(const void* pointer) {
    orPointerAttributes attributes;
    OPENREG_CHECK(orPointerGetAttributes(&attributes, pointer));
    const std::lock_guard lock(mutex_);
    const auto block = blocks_.find(attributes.pointer);
    if (block == blocks_.end()) {
      return nullptr;
    }
    block->second.holds += 1;
    return attributes.pointer;
  }

  void release(void* pointer) noexcept {
    const std::lock_guard lock(mutex_);
    const auto block = blocks_.find(pointer);
    block->second.holds -= 1;
    if (block->second.holds == 0 && block->second.freed) {
      erase(block);
    }
  }

 private:
  struct Block {
    size_t size;
    int holds = 0;
    bool freed = false; // while held
  };
  using Blocks = std::unordered_map<void*, Block>;

  void erase(Blocks::iterator block) noexcept {
    const orError_t error = orFreeUnused(block->first);
    // A forked child does not free what it inherited: that is the parent's.
    if (error != orSuccess && error != orErrorInitialization) {
      warn_runtime_error(error);
    }
    stats_.num_host_free += 1;
    decrease(block->second.size);
    blocks_.erase(block);
  }
  void increase(size_t size) {
    stats_.allocations.increase(1);
    stats_.active_requests.increase(1);
    stats_.allocated_bytes.increase(size);
    stats_.active_bytes.increase(size);
  }
  void decrease(size_t size) {
    stats_.allocations.decrease(1);
    stats_.active_requests.decrease(1);
    stats_.allocated_bytes.decrease(size);
    stats_.active_bytes.decrease(size);
  }
  static void free_block(void* pointer);

  std::mutex mutex_;
  Blocks blocks_;
  at::HostStats stats_;
};

HostAllocator& host_allocator() {
  static auto* value = new HostAllocator;
  return *value;
}

void HostAllocator::free_block(void* pointer) {
  if (pointer != nullptr) {
    host_allocator().free(pointer);
  }
}

} // namespace

void* hold_pinned(const void* pointer) {
  return host_allocator().hold(pointer);
}

void release_pinned(void* block) noexcept {
  host_allocator().release(block);
}

OPENREG_MECHANISM(host_allocator, "at::HostAllocator") {
  at::setHostAllocator(c10::kPrivateUse1, &host_allocator());
}

} // namespace openreg::aten
