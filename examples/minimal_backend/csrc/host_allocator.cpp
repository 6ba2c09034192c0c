// SPDX-License-Identifier: BSD-3-Clause
// Pinned host memory: tensor.pin_memory() and DataLoader(pin_memory=True).
#include <ATen/core/CachingHostAllocator.h>

#include <cstring>

#include "runtime.h"

namespace torch_minimal {
namespace {

// [docs: host-allocator]
struct HostAllocator final : at::HostAllocator {
  at::DataPtr allocate(size_t size) override {
    void* data = nullptr;
    check(orMallocHost(&data, size));
    return {data, data, raw_deleter(), c10::Device(c10::kCPU)};
  }
  at::DeleterFnPtr raw_deleter() const override {
    return [](void* data) {
      if (in_bad_fork()) return;
      const orError_t error = orFreeHost(data); // waits for all work on all devices
      if (error != orSuccess) warn(error);
    };
  }
  void copy_data(void* dst, const void* src, size_t size) const override {
    std::memcpy(dst, src, size);
  }
  // A cache must keep a block until the stream has reached this point.
  bool record_event(void*, void*, c10::Stream) override { return true; }
  void empty_cache() override {}
  at::HostStats get_stats() override { return {}; }
  void reset_accumulated_stats() override {}
  void reset_peak_stats() override {}
};

HostAllocator& host_allocator = *new HostAllocator;
REGISTER_HOST_ALLOCATOR(c10::kPrivateUse1, &host_allocator)
// [docs: end]

} // namespace
} // namespace torch_minimal
