// SPDX-License-Identifier: BSD-3-Clause
// Device tensors as CPU kernels see them, and results as the device keeps them.
#pragma once

#include "alias/alias_pool.h"
#include "base/pointer_table.h"
#include "facts/operator_info.h"

#include <ATen/core/QuantizerBase.h>
#include <ATen/core/Tensor.h>
#include <c10/util/SmallVector.h>

#include <vector>

namespace openreg::aten {

/// For one kernel: gives it device tensors as CPU tensors over the same memory
/// and adopts its results, both without copying data.
///
/// It holds no reference to the tensors it aliases, for the first reference
/// besides that of a tensor's Python object takes the GIL; they outlive it.
class CpuAliases {
 public:
  /// For a kernel of `op`, which must live as long.
  CpuAliases(const c10::OperatorHandle& op, c10::DeviceIndex device)
      : op_(op), device_(device) {}
  CpuAliases(const CpuAliases&) = delete;
  CpuAliases& operator=(const CpuAliases&) = delete;
  ~CpuAliases();

  /// A CPU tensor over the memory of a device tensor. The same tensor gives the
  /// same alias, and tensors that share a storage give aliases that do: kernels
  /// look at both. What a kernel changes of a `written` tensor's size, strides
  /// or buffer is written back by write_back(). Throws for a tensor that does
  /// not lie in its storage.
  at::Tensor& alias(const at::Tensor& tensor, bool written);
  /// The same for a tensor that nobody else keeps.
  at::Tensor& alias(at::Tensor&& tensor, bool written);

  /// What a kernel gets for a tensor among its arguments: an alias, or the
  /// tensor itself where it is undefined, or on the CPU and accepted there.
  /// Throws PyTorch's error about two devices.
  at::Tensor& alias_argument(
      const at::Tensor& tensor,
      const OperatorInfo::Argument& argument);

  /// Gives written tensors the metadata that the kernel changed; returns
  /// whether there was any.
  bool write_back();
  /// Whether that were conjugate or negative bits, which an enqueued kernel
  /// would set too late.
  bool has_changed_bits() const {
    return has_changed_bits_;
  }
  /// Whether one had elements, and got other sizes.
  bool has_resized_elements() const {
    return has_resized_elements_;
  }

  /// Whether an argument was a tensor of the host.
  bool has_host_tensors() const {
    return has_host_tensors_;
  }
  /// Whether `tensor` is one of the aliases that this made.
  bool is_alias(const at::Tensor& tensor) const;
  /// Moves the aliases to the end of `aliases`, for a kernel that runs later:
  /// they know the memory, and nothing of the device tensors. No tensor is
  /// aliased afterwards.
  void move_aliases(std::vector<CpuAliasPtr>& aliases);

  /// Makes a kernel's result a tensor of the device: a view of an alias becomes
  /// a view of the device tensor, and the device becomes the owner of a new
  /// buffer.
  at::Tensor adopt(at::Tensor result);

  /// Gives a written tensor what a kernel returned for it, if that is not its
  /// alias: the quantized mean.out and std.out do not write to what they get.
  void replace(const at::Tensor& tensor, at::Tensor result);

 private:
  /// Both are kept alive: by the device tensor, and as one of aliased_.
  struct SharedStorage {
    c10::StorageImpl* device;
    CpuAlias* alias;
  };
  struct SharedQuantizer {
    at::QuantizerPtr device;
    at::QuantizerPtr alias;
  };
  struct Aliased {
    c10::TensorImpl* device;
    CpuAliasPtr alias;
    bool written;
  };

  /// The same for a tensor that is not a buffer with strides: its component
  /// tensors are aliased, or adopted, and put together again.
  at::Tensor& alias_components(const at::Tensor& tensor, bool written);
  at::Tensor adopt_components(const at::Tensor& result);
  void write_back_components(const Aliased& aliased);

  [[noreturn]] void throw_outside_storage(const c10::TensorImpl& tensor) const;

  /// An alias of the kind of tensor that `impl` is, over nothing yet.
  CpuAliasPtr make_alias_of(c10::TensorImpl& impl);

  /// The quantizer of the alias of a quantized tensor, and that of a result.
  /// One that has scales and zero points for each channel has them in tensors.
  at::QuantizerPtr alias_quantizer(const at::QuantizerPtr& quantizer);
  at::QuantizerPtr adopt_quantizer(const at::QuantizerPtr& quantizer);

  /// The CPU storage that stands for a device storage: that of `own`, unless
  /// another aliased tensor shares it.
  const c10::Storage&
  share_storage(const c10::Storage& storage, bool written, CpuAlias& own);
  /// Lets an alias follow a storage whose buffer changed.
  static void follow(const SharedStorage& shared);
  /// The device storage that the storage of an alias stands for, or null.
  c10::StorageImpl* find_device_storage(const c10::Storage& alias);
  /// The device storage for the storage of a result.
  c10::Storage device_storage(const c10::Storage& result);

  const c10::OperatorHandle& op_;
  const OperatorInfo::Argument* argument_ = nullptr; // that is being aliased
  c10::DeviceIndex device_;
  bool has_host_tensors_ = false;
  bool has_changed_bits_ = false;
  bool has_resized_elements_ = false;
  c10::SmallVector<SharedStorage, 4> storages_;
  c10::SmallVector<Aliased, 4> aliased_;
  PointerTable by_tensor_; // places in aliased_, and in storages_
  PointerTable by_storage_;
  PointerTable by_alias_storage_;
  std::vector<Aliased> composed_; // tensors with components, from no pool
  std::vector<SharedQuantizer> quantizers_;
  c10::SmallVector<at::Tensor, 1> kept_;
  std::vector<c10::Storage> replaced_; // what written tensors had before
};

/// A CPU tensor over the memory of a CPU tensor, which it does not keep alive.
at::Tensor borrow(const at::Tensor& tensor);

} // namespace openreg::aten
