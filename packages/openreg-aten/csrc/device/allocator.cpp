// SPDX-License-Identifier: BSD-3-Clause
// The allocator that PyTorch sees, over one block pool per device.
#include "device/allocator.h"

#include "device/block_pool.h"
#include "device/device.h"
#include "device/error.h"
#include "kernel/kernel.h"
#include "mechanism.h"

#include <algorithm>
#include <cstring>
#include <iomanip>
#include <memory>
#include <mutex>
#include <sstream>
#include <vector>

namespace openreg::aten {
namespace {

struct DeviceMemory {
  explicit DeviceMemory(c10::DeviceIndex device) : pool(device) {}
  std::mutex mutex;
  BlockPool pool;
};

std::vector<std::unique_ptr<DeviceMemory>>& memories() {
  static auto* value = [] {
    auto* made = new std::vector<std::unique_ptr<DeviceMemory>>;
    for (c10::DeviceIndex index = 0; index < device_count(); ++index) {
      made->push_back(std::make_unique<DeviceMemory>(index));
    }
    return made;
  }();
  return *value;
}

DeviceMemory& memory_of(c10::DeviceIndex device) {
  auto& all = memories();
  const auto index = static_cast<size_t>(device); // a negative one is too large
  if (C10_UNLIKELY(index >= all.size())) {
    check_device(device);
  }
  return *all[index];
}

/// The device that a device pointer belongs to.
c10::DeviceIndex owner_of(const void* pointer) {
  const AddressRange& range = address_range();
  const auto span =
      static_cast<size_t>(range.end - range.begin) / memories().size();
  const auto offset =
      static_cast<size_t>(static_cast<const std::byte*>(pointer) - range.begin);
  return static_cast<c10::DeviceIndex>(offset / span);
}

size_t current_bytes(const c10::CachingAllocator::StatArray& stats) {
  return static_cast<size_t>(stats[0].current);
}

std::string format_size(size_t bytes) {
  std::ostringstream text;
  text << std::fixed << std::setprecision(2);
  if (bytes < 1024) {
    text << bytes << " bytes";
  } else if (bytes < (size_t{1} << 20)) {
    text << static_cast<double>(bytes) / 1024 << " KiB";
  } else if (bytes < (size_t{1} << 30)) {
    text << static_cast<double>(bytes) / (1 << 20) << " MiB";
  } else {
    text << static_cast<double>(bytes) / (1 << 30) << " GiB";
  }
  return text.str();
}

std::pair<size_t, size_t> memory_info(c10::DeviceIndex device) {
  const CurrentDevice scope(device);
  size_t free = 0;
  size_t total = 0;
  OPENREG_CHECK(orMemGetInfo(&free, &total));
  return {free, total};
}

[[noreturn]] void throw_out_of_memory(
    c10::DeviceIndex device,
    size_t size,
    const BlockPool::Stats& stats) {
  const size_t allocated = current_bytes(stats.allocated_bytes);
  const size_t reserved = current_bytes(stats.reserved_bytes);
  const c10::Device where(c10::kPrivateUse1, device);
  c10::reportOutOfMemoryToProfiler(
      static_cast<int64_t>(size), allocated, reserved, where);
  const auto [free, total] = memory_info(device);
  TORCH_CHECK_WITH(
      OutOfMemoryError,
      false,
      "OpenReg out of memory. Tried to allocate ",
      format_size(size),
      ". Device ",
      where,
      " has a total capacity of ",
      format_size(total),
      " of which ",
      format_size(free),
      " is free. Of the allocated memory ",
      format_size(allocated),
      " is allocated by PyTorch, and ",
      format_size(reserved - allocated),
      " is reserved by PyTorch but unallocated. Set OPENREG_DEVICE_MEMORY to "
      "simulate a larger device.");
}

class Allocator final : public c10::DeviceAllocator {
 public:
  c10::DataPtr allocate(size_t size) override {
    const c10::DeviceIndex device = current_device();
    return own_block(device, allocate_block(device, size));
  }
  c10::DeleterFnPtr raw_deleter() const override {
    return [](void* block) { free_block(block); };
  }
  void copy_data(void* dst, const void* src, std::size_t count) const override {
    run_on_current_stream(current_device(), [&] {
      std::memcpy(to_kernel(dst), to_kernel(src), count);
    });
  }

  bool initialized() override {
    return is_initialized();
  }
  void emptyCache(c10::MempoolId_t) override {
    for (auto& memory : memories()) {
      const std::lock_guard lock(memory->mutex);
      memory->pool.release_cached();
    }
  }
  // Operators have run when their call returns, and enqueued copies hold their
  // memory, so no block is reused while a stream still works on it.
  void recordStream(const c10::DataPtr&, c10::Stream stream) override {
    TORCH_CHECK(
        stream.device_type() == c10::kPrivateUse1,
        "record_stream: expected a stream of device type ",
        c10::kPrivateUse1,
        ", got one of ",
        stream.device_type());
  }
  c10::CachingDeviceAllocator::DeviceStats getDeviceStats(
      c10::DeviceIndex device) override {
    DeviceMemory& memory = memory_of(device);
    const std::lock_guard lock(memory.mutex);
    return memory.pool.stats();
  }
  void resetAccumulatedStats(c10::DeviceIndex device) override {
    for_each_stat(device, [](auto& stat) { stat.reset_accumulated(); });
    DeviceMemory& memory = memory_of(device);
    const std::lock_guard lock(memory.mutex);
    auto& stats = memory.pool.stats();
    stats.num_alloc_retries = 0;
    stats.num_ooms = 0;
    stats.num_device_alloc = 0;
    stats.num_device_free = 0;
  }
  void resetPeakStats(c10::DeviceIndex device) override {
    for_each_stat(device, [](auto& stat) { stat.reset_peak(); });
  }
  std::pair<size_t, size_t> getMemoryInfo(c10::DeviceIndex device) override {
    return memory_info(device);
  }

 private:
  template <typename Change>
  void for_each_stat(c10::DeviceIndex device, const Change& change) {
    DeviceMemory& memory = memory_of(device);
    const std::lock_guard lock(memory.mutex);
    auto& stats = memory.pool.stats();
    for (auto* array :
         {&stats.allocation,
          &stats.segment,
          &stats.active,
          &stats.inactive_split,
          &stats.allocated_bytes,
          &stats.reserved_bytes,
          &stats.active_bytes,
          &stats.inactive_split_bytes,
          &stats.requested_bytes}) {
      std::for_each(array->begin(), array->end(), change);
    }
  }
};

void report(
    void* pointer,
    int64_t change,
    c10::DeviceIndex device,
    const BlockPool::Stats& stats) {
  if (C10_UNLIKELY(c10::memoryProfilingEnabled())) {
    c10::reportMemoryUsageToProfiler(
        pointer,
        change,
        current_bytes(stats.allocated_bytes),
        current_bytes(stats.reserved_bytes),
        c10::Device(c10::kPrivateUse1, device));
  }
}

} // namespace

c10::DeviceAllocator& device_allocator() {
  static auto* value = new Allocator;
  return *value;
}

void* allocate_block(c10::DeviceIndex device, size_t size) {
  if (size == 0) {
    return nullptr;
  }
  DeviceMemory& memory = memory_of(device);
  const std::lock_guard lock(memory.mutex);
  void* pointer = memory.pool.allocate(size);
  if (pointer == nullptr) {
    throw_out_of_memory(device, size, memory.pool.stats());
  }
  report(pointer, static_cast<int64_t>(size), device, memory.pool.stats());
  return pointer;
}

void free_block(void* pointer) noexcept {
  if (pointer == nullptr || in_bad_fork()) {
    return; // what a forked child inherited is the parent's to free
  }
  const c10::DeviceIndex device = owner_of(pointer);
  DeviceMemory& memory = memory_of(device);
  const std::lock_guard lock(memory.mutex);
  const size_t size = memory.pool.free(pointer);
  report(pointer, -static_cast<int64_t>(size), device, memory.pool.stats());
}

bool hold_block(const void* pointer) {
  if (pointer == nullptr) {
    return false;
  }
  DeviceMemory& memory = memory_of(owner_of(pointer));
  const std::lock_guard lock(memory.mutex);
  return memory.pool.hold(pointer);
}

void release_block(void* pointer) noexcept {
  DeviceMemory& memory = memory_of(owner_of(pointer));
  const std::lock_guard lock(memory.mutex);
  memory.pool.release_hold(pointer);
}

void resize_storage(const c10::Storage& storage, size_t size) {
  c10::StorageImpl* impl = storage.unsafeGetStorageImpl();
  TORCH_CHECK(
      impl->resizable(), "Trying to resize storage that is not resizable");
  const c10::DeviceIndex device = storage.device().index();
  c10::DataPtr data = own_block(device, allocate_block(device, size));
  const size_t kept = std::min(size, impl->nbytes());
  if (kept > 0) {
    run_on_current_stream(device, [&] {
      std::memcpy(to_kernel(data.get()), to_kernel(impl->data()), kept);
    });
  }
  impl->set_data_ptr_noswap(std::move(data));
  impl->set_nbytes(size);
}

OPENREG_MECHANISM(allocator, "c10::DeviceAllocator, c10::SetAllocator") {
  c10::SetAllocator(c10::kPrivateUse1, &device_allocator());
}

} // namespace openreg::aten
