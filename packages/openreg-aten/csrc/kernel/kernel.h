// SPDX-License-Identifier: BSD-3-Clause
// The one way to run work on a device: in the order of its current stream.
#pragma once

#include "device/error.h"
#include "device/gil.h"
#include "device/stream.h"

#include <openreg/openreg.h>

#include <c10/core/Device.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <exception>
#include <utility>

namespace openreg::aten {

/// Runs `work` in the order of the device's current stream, on this thread, and
/// returns when it has run. Throws what it throws.
template <typename Work>
void run_on_current_stream(c10::DeviceIndex device, Work&& work) {
  struct Call {
    Work& work;
    std::exception_ptr failure;
  } call{work, nullptr};
  const GilRelease released; // PyTorch fills and copies storages with the GIL
  OPENREG_CHECK(orLaunchKernelBlocking(
      current_handle(device),
      [](void* argument) {
        auto& call = *static_cast<Call*>(argument);
        try {
          call.work();
        } catch (...) {
          call.failure = std::current_exception();
        }
      },
      &call));
  if (call.failure) {
    std::rethrow_exception(call.failure);
  }
}

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

} // namespace openreg::aten
