// SPDX-License-Identifier: BSD-3-Clause
// The allocator of pinned host memory.
//
// Work that is enqueued holds the tensors it uses, pinned ones too, so a block
// is never freed while a copy is in flight and record_event() has nothing to
// remember.
#include "device/error.h"
#include "mechanism.h"

#include <ATen/core/CachingHostAllocator.h>

#include <cstring>
#include <mutex>

namespace openreg::aten {
namespace {

class HostAllocator final : public at::HostAllocator {
 public:
  at::DataPtr allocate(size_t size) override {
    void* pointer = nullptr;
    OPENREG_CHECK(orMallocHost(&pointer, size));
    if (pointer != nullptr) {
      const std::lock_guard lock(mutex_);
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

  bool record_event(void*, void*, c10::Stream) override {
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
    orPointerAttributes attributes;
    orError_t error = orPointerGetAttributes(&attributes, pointer);
    if (error == orSuccess) {
      error = orFreeHost(pointer);
    }
    if (error == orErrorInitialization) {
      return; // inherited by a forked child: the parent's to free
    }
    if (error != orSuccess) {
      warn_runtime_error(error);
      return;
    }
    const std::lock_guard lock(mutex_);
    stats_.num_host_free += 1;
    decrease(attributes.size);
  }

 private:
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

OPENREG_MECHANISM(host_allocator, "at::HostAllocator") {
  at::setHostAllocator(c10::kPrivateUse1, &host_allocator());
}

} // namespace openreg::aten
