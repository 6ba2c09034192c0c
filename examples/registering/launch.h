// SPDX-License-Identifier: BSD-3-Clause
// Device access for the kernels of these examples: a pointer and a launch.
#pragma once

#include <openreg/openreg.h>

#include <ATen/core/Tensor.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

#include <utility>

namespace registering {

inline void check(orError_t error) {
  TORCH_CHECK(error == orSuccess, orGetErrorMessage());
}

/// Returns the address that kernels use for a device tensor; the host never
/// reads it.
template <typename T>
T* kernel_pointer(const at::Tensor& tensor) {
  void* pointer = nullptr;
  check(orGetKernelPointer(&pointer, tensor.const_data_ptr()));
  return static_cast<T*>(pointer);
}

/// Enqueues `work` on the current stream of the tensor's device.
template <typename Work>
void launch(const at::Tensor& tensor, Work&& work) {
  const auto* device = c10::impl::getDeviceGuardImpl(c10::kPrivateUse1);
  const auto stream = device->getStream(tensor.device());
  check(orLaunchKernel(
      static_cast<orStream_t>(device->getStreamNativeHandle(stream)),
      std::forward<Work>(work)));
}

} // namespace registering
