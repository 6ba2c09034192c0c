// SPDX-License-Identifier: BSD-3-Clause
// The device that an operator runs on, and the host tensors it accepts there.
#pragma once

#include "device/device.h"
#include "facts/operator_info.h"

#include <ATen/core/Tensor.h>

namespace openreg::aten {

/// Throws PyTorch's error about tensors of two devices.
[[noreturn]] C10_NOINLINE inline void throw_two_devices(
    c10::DeviceIndex device,
    const at::Tensor& tensor) {
  TORCH_CHECK(
      false,
      "Expected all tensors to be on the same device, but found at least two "
      "devices, ",
      c10::Device(c10::kPrivateUse1, device),
      " and ",
      tensor.device(),
      "!");
}

/// Whether a defined tensor may stand beside those of the device although it is
/// not the device's. As on CUDA, this is a tensor of the CPU that is only read,
/// and that holds indices, lengths or the like, or is a number for an operator
/// that takes those.
inline bool is_accepted_from_host(
    const at::Tensor& tensor,
    const OperatorInfo::Argument& argument) {
  return tensor.is_cpu() && !argument.written &&
      (tensor.dim() == 0 ? argument.takes_number : argument.takes_host);
}

/// The device of an operator: that of its first device tensor, else of its
/// device argument, else the current one. Throws if it has tensors of two
/// devices.
class DeviceFinder {
 public:
  void see(const at::Tensor& tensor) {
    if (!tensor.defined() || tensor.device().type() != c10::kPrivateUse1) {
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
  void see(const c10::Device& device) {
    if (index_ < 0 && device.type() == c10::kPrivateUse1) {
      index_ = with_index(device).index();
      check_device(index_);
    }
  }
  /// Throws PyTorch's error about a generator of the device, which brought the
  /// call here, beside tensors of the host alone.
  void check_generator() const {
    TORCH_CHECK(
        index_ >= 0 || !on_host_,
        "Expected a 'cpu' device type for generator but found '",
        c10::DeviceTypeName(c10::kPrivateUse1, /*lower_case=*/true),
        "'");
  }
  c10::DeviceIndex result() const {
    return index_ < 0 ? current_device() : index_;
  }

 private:
  c10::DeviceIndex index_ = -1;
  bool on_host_ = false; // there are tensors of the host
};

} // namespace openreg::aten
