// SPDX-License-Identifier: BSD-3-Clause
// Device tensors as CPU kernels see them, and results as the device keeps them.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/SmallVector.h>

namespace openreg::aten {

/// For one kernel: presents device tensors as CPU tensors over the same memory
/// and takes results over, both without copying data.
class DeviceViews {
 public:
  explicit DeviceViews(c10::DeviceIndex device) : device_(device) {}
  DeviceViews(const DeviceViews&) = delete;
  DeviceViews& operator=(const DeviceViews&) = delete;

  /// A CPU tensor over the memory of a device tensor. The same tensor gives the
  /// same view, and tensors that share a storage give views that do: kernels
  /// look at both. What a kernel changes of a `written`
  /// tensor's size, strides or buffer is carried over by finish().
  at::Tensor present(const at::Tensor& tensor, bool written);

  /// Carries changed metadata of written tensors back to them.
  void finish();

  /// Makes a kernel's result a tensor of the device: a view of a presented
  /// tensor becomes a view of the device tensor, a new buffer changes hands.
  at::Tensor take_over(at::Tensor result);

 private:
  struct SharedStorage {
    c10::Storage device;
    c10::Storage view;
  };
  struct Presented {
    at::Tensor device;
    at::Tensor view;
    bool written;
  };

  /// The same for a tensor that is not a buffer with strides: its members are
  /// presented, or taken over, and put together again.
  at::Tensor present_members(const at::Tensor& tensor, bool written);
  at::Tensor take_over_members(const at::Tensor& result);
  void finish_members(const Presented& presented);

  const c10::Storage& view_of(const c10::Storage& storage, bool written);
  /// Lets a view follow a storage whose buffer changed.
  static void follow(const SharedStorage& shared);
  /// The device storage for the storage of a result.
  c10::Storage device_storage(const c10::Storage& result);

  c10::DeviceIndex device_;
  c10::SmallVector<SharedStorage, 4> storages_;
  c10::SmallVector<Presented, 4> presented_;
};

/// A CPU tensor over the memory of a CPU tensor, which it does not keep alive.
at::Tensor borrow(const at::Tensor& tensor);

} // namespace openreg::aten
