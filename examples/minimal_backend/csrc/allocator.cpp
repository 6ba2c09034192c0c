// SPDX-License-Identifier: BSD-3-Clause
// Device memory: one driver block per storage, freed without a cache.
#include <c10/core/CachingDeviceAllocator.h>

#include <algorithm>
#include <map>
#include <mutex>

#include "runtime.h"

namespace torch_minimal {
namespace {

using Stats = c10::CachingDeviceAllocator::DeviceStats;

class Allocator final : public c10::DeviceAllocator {
 public:
  c10::DataPtr allocate(size_t size) override {
    const c10::DeviceIndex device = current_device();
    void* data = nullptr;
    check(orMalloc(&data, size)); // null for no bytes
    if (data) count(data, /*sign=*/1);
    return {data, data, raw_deleter(), c10::Device(c10::kPrivateUse1, device)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &release; }
  void copy_data(void* dst, const void* src, size_t size) const override {
    check(orMemcpy(dst, src, size, orMemcpyDeviceToDevice));
  }

  // [docs: device-allocator]
  bool initialized() override { return true; }
  void emptyCache(c10::MempoolId_t) override {} // there is no cache
  // orFree waits for all work on the device, so no stream still uses a freed block.
  void recordStream(const c10::DataPtr&, c10::Stream) override {}
  Stats getDeviceStats(c10::DeviceIndex device) override {
    const std::lock_guard lock(mutex_);
    return stats_[device];
  }
  void resetAccumulatedStats(c10::DeviceIndex device) override {
    const std::lock_guard lock(mutex_);
    for (auto* stat : counted(device)) stat->reset_accumulated();
  }
  void resetPeakStats(c10::DeviceIndex device) override {
    const std::lock_guard lock(mutex_);
    for (auto* stat : counted(device)) stat->reset_peak();
  }
  std::pair<size_t, size_t> getMemoryInfo(c10::DeviceIndex device) override {
    const c10::DeviceIndex before = exchange_device(device);
    std::pair<size_t, size_t> info;
    const orError_t error = orMemGetInfo(&info.first, &info.second);
    exchange_device(before);
    check(error);
    return info;
  }
  // [docs: end]

 private:
  static void release(void* data);

  std::array<c10::CachingAllocator::Stat*, 2> counted(c10::DeviceIndex device) {
    return {&stats_[device].allocated_bytes[0], &stats_[device].reserved_bytes[0]};
  }
  void count(void* data, int sign) {
    orPointerAttributes block = OPENREG_POINTER_ATTRIBUTES_INIT;
    const orError_t error = orPointerGetAttributes(&block, data);
    if (error != orSuccess) return warn(error); // never throws: destructors call this
    const std::lock_guard lock(mutex_);
    for (auto* stat : counted(static_cast<c10::DeviceIndex>(block.device))) {
      sign > 0 ? stat->increase(block.size) : stat->decrease(block.size);
    }
  }

  std::mutex mutex_;
  std::map<c10::DeviceIndex, Stats> stats_;
};

// [docs: allocator-registration]
Allocator& allocator = *new Allocator; // tensors may outlive the static objects
REGISTER_ALLOCATOR(c10::kPrivateUse1, &allocator)

// Runs in destructors, including at process exit.
void Allocator::release(void* data) {
  if (!data || in_bad_fork()) return;
  allocator.count(data, -1);
  const orError_t error = orFree(data);
  if (error != orSuccess) warn(error);
}
// [docs: end]

} // namespace

void resize_storage(const c10::Storage& storage, size_t size) {
  const c10::DeviceIndex before = exchange_device(storage.device().index());
  c10::DataPtr made = allocator.allocate(size);
  exchange_device(before);
  const size_t kept = std::min(size, storage.nbytes());
  const orStream_t stream = current_handle(storage.device().index());
  check(orMemcpyAsync(made.get(), storage.data(), kept, orMemcpyDeviceToDevice, stream));
  storage.set_data_ptr_noswap(std::move(made)); // frees the old block after the copy
  storage.set_nbytes(size);
}

} // namespace torch_minimal
