// SPDX-License-Identifier: BSD-3-Clause
// The CPU allocator while a kernel of the device runs.
#pragma once

#include <c10/core/Allocator.h>
#include <c10/core/Device.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <span>

namespace openreg::aten {

/// What kernels of the CPU are dispatched below.
constexpr c10::DispatchKeySet kBelowAutograd =
    c10::autograd_dispatch_keyset_with_ADInplaceOrView |
    c10::autocast_dispatch_keyset;

/// Allocates device memory, by its kernel pointer, inside a KernelScope, and
/// what the CPU's own allocator gives everywhere else.
c10::Allocator& kernel_cpu_allocator();

/// While one lives, this thread runs CPU kernels for a device: the CPU
/// allocator takes memory from that device, and dispatch stays below autograd
/// and autocast.
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

/// Memory of results that was there before the kernel. Inside an
/// EnqueuedKernelScope, an allocation of exactly the size of one gets it, and
/// all others come from the host.
struct ResultMemory {
  void* data; // a kernel pointer
  size_t size;
  bool taken;
};

/// While one lives, this thread runs a CPU kernel that was enqueued: as
/// KernelScope, but the device's allocator belongs to the host, which is ahead
/// of the device: memory that it freed is still in use here. It may be a thread
/// of the host that waits, whose dispatch modes do not concern the kernel.
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
