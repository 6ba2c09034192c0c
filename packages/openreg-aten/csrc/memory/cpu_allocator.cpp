// SPDX-License-Identifier: BSD-3-Clause
// Allocates the outputs and workspaces of CPU kernels that run for the device.
//
// This allocator wraps the default CPU allocator of the process. Outside a
// KernelScope it only forwards calls. raw_allocate() requires that the context
// of a block is its address and that one deleter frees every block. Blocks
// outlive kernels, so the deleter distinguishes the two kinds by address.
#include "memory/cpu_allocator.h"

#include "base/keys.h"
#include "base/mechanism.h"
#include "base/thread_local.h"
#include "device/device.h"
#include "memory/allocator.h"

#include <c10/core/CPUAllocator.h>
#include <c10/core/CachingDeviceAllocator.h>
#include <c10/util/Exception.h>

#include <atomic>
#include <utility>

namespace openreg::aten {
namespace {

// The device of the KernelScope, or one of these.
constexpr c10::DeviceIndex kNoKernel = -1;
constexpr c10::DeviceIndex kEnqueuedKernel = -2;
OPENREG_THREAD_LOCAL c10::DeviceIndex t_kernel_device = kNoKernel;

// The results of the EnqueuedKernelScope.
OPENREG_THREAD_LOCAL std::span<ResultMemory> t_results;

// Until a kernel has allocated, every block is host memory, and freeing a block
// must not start the devices.
std::atomic<bool> g_kernel_allocated{false};

class KernelCPUAllocator final : public c10::Allocator {
 public:
  explicit KernelCPUAllocator(c10::Allocator& host) : host_(host) {}

  c10::DataPtr allocate(size_t size) override {
    if (C10_LIKELY(t_kernel_device == kNoKernel)) {
      return host_.allocate(size);
    }
    if (t_kernel_device == kEnqueuedKernel) {
      return allocate_enqueued(size);
    }
    g_kernel_allocated.store(true, std::memory_order_relaxed);
    void* data = to_kernel(allocate_kernel_block(t_kernel_device, size));
    return {data, data, &free_any, c10::Device(c10::kCPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override {
    return &free_any;
  }
  void copy_data(void* dst, const void* src, std::size_t count) const override {
    host_.copy_data(dst, src, count);
  }

 private:
  static void free_any(void* data);

  c10::DataPtr allocate_enqueued(size_t size) {
    for (ResultMemory& result : t_results) {
      if (result.size == size && !result.taken) {
        result.taken = true;
        return {result.data, result.data, &free_any, c10::Device(c10::kCPU)};
      }
    }
    try {
      return host_.allocate(size);
    } catch (const c10::Error&) {
      TORCH_CHECK_WITH(
          OutOfMemoryError,
          false,
          kErrorName,
          " out of memory. Tried to allocate ",
          c10::CachingAllocator::format_size(size),
          " of host memory for the temporaries of a running kernel, and the "
          "host allocation failed.");
    }
  }

  c10::Allocator& host_;
};

c10::Allocator& default_allocator() {
  static c10::Allocator* value = c10::GetDefaultCPUAllocator();
  return *value;
}

void KernelCPUAllocator::free_any(void* data) {
  if (C10_UNLIKELY(t_kernel_device == kEnqueuedKernel)) {
    for (ResultMemory& result : t_results) {
      if (result.data == data) {
        result.taken = false; // a host tensor owns it
        return;
      }
    }
  }
  void* block = g_kernel_allocated.load(std::memory_order_relaxed)
      ? to_device(data)
      : nullptr;
  if (block != nullptr) {
    free_block(block);
  } else {
    default_allocator().raw_deleter()(data);
  }
}

} // namespace

c10::Allocator& kernel_cpu_allocator() {
  static auto* value = new KernelCPUAllocator(default_allocator());
  return *value;
}

KernelScope::KernelScope(c10::DeviceIndex device)
    : previous_(t_kernel_device), below_autograd_(kBelowAutograd) {
  t_kernel_device = device;
}

KernelScope::~KernelScope() {
  t_kernel_device = previous_;
}

EnqueuedKernelScope::EnqueuedKernelScope(std::span<ResultMemory> results)
    : previous_results_(std::exchange(t_results, results)),
      previous_device_(std::exchange(t_kernel_device, kEnqueuedKernel)),
      below_autograd_(
          c10::default_included_set,
          c10::default_excluded_set | kBelowAutograd) {}

EnqueuedKernelScope::~EnqueuedKernelScope() {
  t_kernel_device = previous_device_;
  t_results = previous_results_;
}

OPENREG_MECHANISM(
    kernel_allocator,
    "c10::SetCPUAllocator",
    "kernels allocate host memory, which is copied and not counted") {
  c10::SetCPUAllocator(&kernel_cpu_allocator(), /*priority=*/1);
}

} // namespace openreg::aten
