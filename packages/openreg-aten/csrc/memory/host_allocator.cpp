// SPDX-License-Identifier: BSD-3-Clause
// The pinned memory allocator: PyTorch's cache over memory, streams and events
// of the runtime.
#include "memory/host_allocator.h"

#include "base/keys.h"
#include "base/mechanism.h"
#include "device/device.h"
#include "device/error.h"
#include "stream/stream.h"
#include "stream/stream_event.h"
#include "stream/unwritten.h"

#include <ATen/core/CachingHostAllocator.h>

#include <chrono>
#include <cstring>
#include <mutex>
#include <unordered_map>

namespace openreg::aten {
namespace {

using Base = at::CachingHostAllocatorImpl<c10::Stream, StreamEvent>;
using PinnedBlock = at::HostBlock<c10::Stream>;

/// Adds the duration of a scope to a statistic, in microseconds.
class Timing {
 public:
  Timing(c10::CachingAllocator::DurationStat& stat, std::mutex& mutex)
      : stat_(stat), mutex_(mutex) {}
  Timing(const Timing&) = delete;
  Timing& operator=(const Timing&) = delete;
  ~Timing() {
    const auto time = std::chrono::steady_clock::now() - start_;
    const std::lock_guard lock(mutex_);
    stat_.increase(
        std::chrono::duration_cast<std::chrono::microseconds>(time).count());
  }

 private:
  c10::CachingAllocator::DurationStat& stat_;
  std::mutex& mutex_;
  const std::chrono::steady_clock::time_point start_ =
      std::chrono::steady_clock::now();
};

class Cache final : public Base {
 public:
  std::pair<void*, void*> allocate(size_t size) override {
    if (in_bad_fork()) {
      // Throws in a forked child, whose inherited blocks stay unchanged.
      initialize();
    }
    const auto allocated = Base::allocate(size);
    if (allocated.first != nullptr) {
      if (C10_UNLIKELY(fills_unwritten())) {
        write_unwritten(allocated.first, size);
      }
      const std::lock_guard lock(mutex_);
      blocks_.insert_or_assign(allocated.first, allocated.second);
    }
    return allocated;
  }
  void free(void* pointer) override {
    if (pointer == nullptr || in_bad_fork()) {
      return;
    }
    void* block = nullptr;
    {
      const std::lock_guard lock(mutex_);
      block = blocks_.at(pointer);
    }
    Base::free(block);
  }
  bool record_event(void* pointer, void* block, c10::Stream stream) override {
    if (Base::record_event(pointer, block, stream)) {
      return true;
    }
    // The pointer may be inside a block.
    orPointerAttributes attributes = OPENREG_POINTER_ATTRIBUTES_INIT;
    OPENREG_CHECK(orPointerGetAttributes(&attributes, pointer));
    return Base::record_event(attributes.pointer, nullptr, stream);
  }
  void copy_data(void* dst, const void* src, std::size_t count) const override {
    std::memcpy(dst, src, count);
  }

 private:
  void allocate_host_memory(size_t size, void** pointer) override {
    const Timing timing(stats_.host_alloc_time, stats_.timing_mutex_);
    orError_t error = orMallocHost(pointer, size);
    if (error == orErrorMemoryAllocation) {
      empty_cache();
      error = orMallocHost(pointer, size);
    }
    OPENREG_CHECK(error);
  }
  void free_block(PinnedBlock* block) override {
    {
      const std::lock_guard lock(mutex_);
      blocks_.erase(block->ptr_);
    }
    const Timing timing(stats_.host_free_time, stats_.timing_mutex_);
    const orError_t error = orFreeUnused(block->ptr_);
    if (error != orSuccess) {
      warn_runtime_error(error);
    }
  }
  void record_stream(
      std::optional<std::vector<StreamEvent>>& events,
      c10::Stream stream) override {
    events->emplace_back(handle_of(stream));
  }
  bool query_event(StreamEvent& event) override {
    return event.reached();
  }

  std::mutex mutex_;
  std::unordered_map<void*, void*> blocks_; // by address, in use or cached
};

void free_pinned(void* pointer);

class HostAllocator final
    : public at::CachingHostAllocatorInterface<Cache, &free_pinned> {
 public:
  /// The context is the address, not PyTorch's block, because only storages of
  /// this kind can be cloned lazily.
  at::DataPtr allocate(size_t size) override {
    void* pointer = impl_->allocate(size).first;
    return {pointer, pointer, &free_pinned, c10::Device(c10::kCPU)};
  }
  at::DeleterFnPtr raw_deleter() const override {
    return &free_pinned;
  }
};

HostAllocator& host_allocator() {
  static auto* value = new HostAllocator;
  return *value;
}

void free_pinned(void* pointer) {
  host_allocator().free(pointer);
}

} // namespace

bool record_pinned_use(const c10::Storage& storage, c10::Stream stream) {
  const c10::DataPtr& data = storage.data_ptr();
  return host_allocator().record_event(data.get(), nullptr, stream);
}

OPENREG_MECHANISM(host_allocator, "at::HostAllocator", "no pinned memory") {
  at::setHostAllocator(kDeviceType, &host_allocator());
}

} // namespace openreg::aten
