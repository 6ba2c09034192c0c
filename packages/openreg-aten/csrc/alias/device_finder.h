// SPDX-License-Identifier: BSD-3-Clause
// Finds the device that an operator runs on, and the host tensors it accepts
// there.
#pragma once

#include "base/keys.h"
#include "device/device.h"
#include "facts/operator_info.h"

#include <ATen/core/Tensor.h>

namespace openreg::aten {

/// Throws PyTorch's error about tensors on two devices.
[[noreturn]] C10_NOINLINE inline void throw_two_devices(
    c10::DeviceIndex device,
    const at::Tensor& tensor) {
  TORCH_CHECK(
      false,
      "Expected all tensors to be on the same device, but found at least two "
      "devices, ",
      c10::Device(kDeviceType, device),
      " and ",
      tensor.device(),
      "!");
}

/// Whether an operator on a device accepts a defined tensor that is not on the
/// device. As on CUDA, this is a CPU tensor that the operator only reads, and
/// that holds indices, lengths or similar metadata, or a scalar tensor if the
/// operator accepts one.
inline bool is_accepted_from_host(
    const at::Tensor& tensor,
    const OperatorInfo::Argument& argument) {
  return tensor.is_cpu() && !argument.written &&
      (tensor.dim() == 0 ? argument.takes_number : argument.takes_host);
}

/// Finds the device of an operator: the device of its first device tensor, else
/// its device argument, else the current device. Throws if its tensors are on
/// two devices.
class DeviceFinder {
 public:
  void visit(const at::Tensor& tensor) {
    if (!tensor.defined() || tensor.device().type() != kDeviceType) {
      on_host_ = on_host_ || tensor.defined();
      return;
    }
    const c10::DeviceIndex index = tensor.device().index();
    if (index_ < 0) {
      index_ = index;
    } else if (C10_UNLIKELY(index_ != index)) {
      throw_two_devices(index_, tensor);
    }
  }
  void visit(const c10::Device& device) {
    if (index_ < 0 && device.type() == kDeviceType) {
      index_ = with_index(device).index();
      check_device(index_);
    }
  }
  /// Throws PyTorch's error for a call with a device generator whose tensors
  /// are all host tensors.
  void check_generator() const {
    TORCH_CHECK(
        index_ >= 0 || !on_host_,
        "Expected a 'cpu' device type for generator but found '",
        device_type_name(),
        "'");
  }
  c10::DeviceIndex result() const {
    return index_ < 0 ? current_device() : index_;
  }

 private:
  c10::DeviceIndex index_ = -1;
  bool on_host_ = false; // an argument is a host tensor
};

} // namespace openreg::aten
