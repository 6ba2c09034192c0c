// SPDX-License-Identifier: BSD-3-Clause
// Aliases device tensors for CPU kernels, and converts their results to device
// tensors.
#pragma once

#include "alias/alias_pool.h"
#include "base/pointer_table.h"
#include "facts/operator_info.h"

#include <ATen/core/QuantizerBase.h>
#include <ATen/core/Tensor.h>
#include <c10/util/SmallVector.h>

#include <vector>

namespace openreg::aten {

/// Serves one kernel: passes it device tensors as CPU tensors over the same
/// memory, and adopts its results. Neither copies data.
///
/// It holds no references to the aliased tensors, because the first reference
/// after that of the Python object takes the GIL. The tensors must outlive it.
class CpuAliases {
 public:
  /// `op` must outlive the object.
  CpuAliases(const c10::OperatorHandle& op, c10::DeviceIndex device)
      : op_(op), device_(device) {}
  CpuAliases(const CpuAliases&) = delete;
  CpuAliases& operator=(const CpuAliases&) = delete;
  ~CpuAliases();

  /// Returns a CPU tensor over the same memory as `tensor`. The same tensor
  /// always returns the same alias, and the aliases of tensors that share a
  /// storage share one too, because kernels check both. write_back() copies
  /// changes of the size, strides or buffer to a `written` tensor. Throws if
  /// the tensor extends past the end of its storage.
  at::Tensor& alias(const at::Tensor& tensor, bool written);
  /// Aliases a tensor that only the caller references.
  at::Tensor& alias(at::Tensor&& tensor, bool written);

  /// Returns the tensor to pass to the kernel: an alias, or the argument itself
  /// if it is undefined or is a CPU tensor that the operator accepts. Throws
  /// PyTorch's error about two devices.
  at::Tensor& alias_argument(
      const at::Tensor& tensor,
      const OperatorInfo::Argument& argument);

  /// Copies metadata that the kernel changed to the written tensors. Returns
  /// whether the kernel changed any.
  bool write_back();
  /// Whether write_back() changed conjugate or negative bits. An enqueued
  /// kernel would set them too late.
  bool has_changed_bits() const {
    return has_changed_bits_;
  }
  /// Whether write_back() changed the size of a tensor that had elements.
  bool has_resized_elements() const {
    return has_resized_elements_;
  }

  /// Whether an argument was a host tensor.
  bool has_host_tensors() const {
    return has_host_tensors_;
  }
  /// Whether `tensor` is an alias that this object created.
  bool is_alias(const at::Tensor& tensor) const;
  /// Moves the aliases to the end of `aliases`, for a kernel that runs later.
  /// They keep the memory address and no reference to the device tensors.
  /// Afterwards this object has no aliases.
  void move_aliases(std::vector<CpuAliasPtr>& aliases);

  /// Converts a kernel result to a device tensor: a view of an alias becomes a
  /// view of the device tensor, and the device takes ownership of a new buffer.
  at::Tensor adopt(at::Tensor result);

  /// Assigns a written tensor the result that a kernel returned for it, if that
  /// is not its alias: the quantized mean.out and std.out do not write to their
  /// argument.
  void replace(const at::Tensor& tensor, at::Tensor result);

 private:
  /// The device tensor keeps one alive, aliased_ the other.
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

  /// Alias and adopt a tensor without strides: each component tensor is
  /// converted, and the results are composed.
  at::Tensor& alias_components(const at::Tensor& tensor, bool written);
  at::Tensor adopt_components(const at::Tensor& result);
  void write_back_components(const Aliased& aliased);

  [[noreturn]] void throw_outside_storage(const c10::TensorImpl& tensor) const;

  /// Returns an empty alias of the same kind of tensor as `impl`.
  CpuAliasPtr make_alias_of(c10::TensorImpl& impl);

  /// Return the quantizer of the alias of a quantized tensor, and the quantizer
  /// of a result. A per-channel quantizer holds its scales and zero points in
  /// tensors, which are converted.
  at::QuantizerPtr alias_quantizer(const at::QuantizerPtr& quantizer);
  at::QuantizerPtr adopt_quantizer(const at::QuantizerPtr& quantizer);

  /// Returns the CPU storage for a device storage: the storage of `own`, unless
  /// another aliased tensor shares the device storage.
  const c10::Storage&
  share_storage(const c10::Storage& storage, bool written, CpuAlias& own);
  /// Updates an alias after the buffer of its storage changed.
  static void follow(const SharedStorage& shared);
  /// Returns the device storage of an alias storage, or null.
  c10::StorageImpl* find_device_storage(const c10::Storage& alias);
  /// Returns the device storage for the storage of a result.
  c10::Storage device_storage(const c10::Storage& result);

  const c10::OperatorHandle& op_;
  const OperatorInfo::Argument* argument_ = nullptr; // being aliased
  c10::DeviceIndex device_;
  bool has_host_tensors_ = false;
  bool has_changed_bits_ = false;
  bool has_resized_elements_ = false;
  c10::SmallVector<SharedStorage, 4> storages_;
  c10::SmallVector<Aliased, 4> aliased_;
  PointerTable by_tensor_; // indices into aliased_ and storages_
  PointerTable by_storage_;
  PointerTable by_alias_storage_;
  std::vector<Aliased> composed_; // with components, not pooled
  std::vector<SharedQuantizer> quantizers_;
  c10::SmallVector<at::Tensor, 1> kept_;
  std::vector<c10::Storage> replaced_; // previous storages of written tensors
};

/// Returns another CPU tensor over the same memory as `tensor`, without a
/// reference to it.
at::Tensor borrow(const at::Tensor& tensor);

} // namespace openreg::aten
