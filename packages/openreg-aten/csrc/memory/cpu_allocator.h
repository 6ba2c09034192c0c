// SPDX-License-Identifier: BSD-3-Clause
// The CPU allocator while a device kernel runs.
#pragma once

#include <c10/core/Allocator.h>
#include <c10/core/Device.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <span>

namespace openreg::aten {

/// The keys with which CPU kernels are dispatched, below autograd.
constexpr c10::DispatchKeySet kBelowAutograd =
    c10::autograd_dispatch_keyset_with_ADInplaceOrView |
    c10::autocast_dispatch_keyset;

/// Allocates device memory inside a KernelScope, and returns its kernel
/// pointer. Elsewhere it calls the default CPU allocator.
c10::Allocator& kernel_cpu_allocator();

/// Marks this thread as running CPU kernels for a device: the CPU allocator
/// allocates memory of that device, and dispatch stays below autograd and
/// autocast.
class KernelScope {
 public:
  explicit KernelScope(c10::DeviceIndex device);
  KernelScope(const KernelScope&) = delete;
  KernelScope& operator=(const KernelScope&) = delete;
  ~KernelScope();

 private:
  c10::DeviceIndex previous_;
  c10::impl::ExcludeDispatchKeyGuard below_autograd_;
};

/// Memory that was allocated for a result before the kernel runs. Inside an
/// EnqueuedKernelScope, an allocation of exactly this size returns it, and all
/// other allocations use host memory.
struct ResultMemory {
  void* data; // a kernel pointer
  size_t size;
  bool taken;
};

/// Marks this thread as running an enqueued CPU kernel. Unlike in a
/// KernelScope, temporaries use host memory: the host is ahead of the device,
/// so memory that it has freed may still be in use here. The thread may be a
/// waiting host thread, whose dispatch modes must not affect the kernel.
class EnqueuedKernelScope {
 public:
  explicit EnqueuedKernelScope(std::span<ResultMemory> results);
  EnqueuedKernelScope(const EnqueuedKernelScope&) = delete;
  EnqueuedKernelScope& operator=(const EnqueuedKernelScope&) = delete;
  ~EnqueuedKernelScope();

 private:
  std::span<ResultMemory> previous_results_;
  c10::DeviceIndex previous_device_;
  c10::impl::ForceDispatchKeyGuard below_autograd_;
};

} // namespace openreg::aten
