// SPDX-License-Identifier: BSD-3-Clause
// Device tensors as CPU kernels see them, and results as the device keeps them.
#pragma once

#include "kernel/operator_info.h"
#include "kernel/view_pool.h"

#include <ATen/core/QuantizerBase.h>
#include <ATen/core/Tensor.h>
#include <c10/util/SmallVector.h>

#include <vector>

namespace openreg::aten {

/// For one kernel: presents device tensors as CPU tensors over the same memory
/// and takes results over, both without copying data.
///
/// It holds no reference to the tensors it presents, for the first reference
/// besides that of a tensor's Python object takes the GIL; they outlive it.
class DeviceViews {
 public:
  explicit DeviceViews(c10::DeviceIndex device) : device_(device) {}
  DeviceViews(const DeviceViews&) = delete;
  DeviceViews& operator=(const DeviceViews&) = delete;
  ~DeviceViews();

  /// A CPU tensor over the memory of a device tensor. The same tensor gives the
  /// same view, and tensors that share a storage give views that do: kernels
  /// look at both. What a kernel changes of a `written`
  /// tensor's size, strides or buffer is carried over by finish().
  at::Tensor& present(const at::Tensor& tensor, bool written);
  /// The same for a tensor that nobody else keeps.
  at::Tensor& present(at::Tensor&& tensor, bool written);

  /// What a kernel gets for a tensor among its arguments: a view, or the tensor
  /// itself where it is undefined, or on the CPU and accepted there. Throws
  /// PyTorch's error about two devices.
  at::Tensor& present_argument(
      const at::Tensor& tensor,
      const OperatorInfo::Argument& argument);

  /// Carries changed metadata of written tensors back to them; whether there
  /// was any.
  bool finish();
  /// Whether that were conjugate or negative bits, which an enqueued kernel
  /// would set too late.
  bool has_changed_bits() const {
    return has_changed_bits_;
  }

  /// Whether an argument was a tensor of the host.
  bool has_host_tensors() const {
    return has_host_tensors_;
  }
  /// Whether `tensor` is one of the views that this presents.
  bool presents(const at::Tensor& tensor) const;
  /// Moves the views to the end of `views`, for a kernel that runs later: they
  /// know the memory, and nothing of the device tensors. Nothing is presented
  /// afterwards.
  void move_views(std::vector<ViewPtr>& views);

  /// Makes a kernel's result a tensor of the device: a view of a presented
  /// tensor becomes a view of the device tensor, a new buffer changes hands.
  at::Tensor take_over(at::Tensor result);

  /// Gives a written tensor what a kernel returned for it, if that is not its
  /// view: the quantized mean.out and std.out do not write to what they get.
  void replace(const at::Tensor& tensor, at::Tensor result);

 private:
  /// Both are kept alive: by the device tensor, and as one of presented_.
  struct SharedStorage {
    c10::StorageImpl* device;
    View* view;
  };
  struct SharedQuantizer {
    at::QuantizerPtr device;
    at::QuantizerPtr view;
  };
  struct Presented {
    c10::TensorImpl* device;
    ViewPtr view;
    bool written;
  };

  /// The same for a tensor that is not a buffer with strides: its members are
  /// presented, or taken over, and put together again.
  at::Tensor& present_members(const at::Tensor& tensor, bool written);
  at::Tensor take_over_members(const at::Tensor& result);
  void finish_members(const Presented& presented);

  /// A view of the kind of tensor that `impl` is, over nothing yet.
  ViewPtr make_view_of(c10::TensorImpl& impl);

  /// The quantizer of the view of a quantized tensor, and that of a result. One
  /// that has scales and zero points for each channel has them in tensors.
  at::QuantizerPtr present_quantizer(const at::QuantizerPtr& quantizer);
  at::QuantizerPtr take_over_quantizer(const at::QuantizerPtr& quantizer);

  /// The CPU storage that stands for a device storage: that of `own`, unless
  /// another presented tensor shares it.
  const c10::Storage&
  share_storage(const c10::Storage& storage, bool written, View& own);
  /// Lets a view follow a storage whose buffer changed.
  static void follow(const SharedStorage& shared);
  /// The device storage that the storage of a view stands for, or null.
  c10::StorageImpl* find_device_storage(const c10::Storage& view) const;
  /// The device storage for the storage of a result.
  c10::Storage device_storage(const c10::Storage& result);

  c10::DeviceIndex device_;
  bool has_host_tensors_ = false;
  bool has_changed_bits_ = false;
  c10::SmallVector<SharedStorage, 4> storages_;
  c10::SmallVector<Presented, 4> presented_;
  std::vector<Presented> composed_; // those with members, from no pool
  std::vector<SharedQuantizer> quantizers_;
  c10::SmallVector<at::Tensor, 1> kept_;
  std::vector<c10::Storage> replaced_; // what written tensors had before
};

/// A CPU tensor over the memory of a CPU tensor, which it does not keep alive.
at::Tensor borrow(const at::Tensor& tensor);

} // namespace openreg::aten
