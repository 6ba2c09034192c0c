// SPDX-License-Identifier: BSD-3-Clause
// Pools the tensor objects of CPU aliases, so that kernels reuse them.
//
// Creating and destroying a tensor and its storage takes four pairs of malloc
// and free, a fifth of the cost of a small operator.
#pragma once

#include <ATen/core/QuantizerBase.h>
#include <ATen/core/Tensor.h>
#include <c10/core/Storage.h>

#include <memory>

namespace openreg::aten {

/// A CPU alias of a device tensor, over the same memory, and a storage that
/// only this alias owns. Aliases of tensors that share a storage use the
/// storage of one of them.
struct CpuAlias {
  at::Tensor tensor;
  c10::Storage storage;
  CpuAlias* next_free = nullptr; // in the pool
};
using CpuAliasPtr = std::unique_ptr<CpuAlias>;

/// Returns an alias for any geometry, dtype, flags and data.
CpuAliasPtr take_alias();

/// Returns an alias for a quantized tensor. It is not pooled.
CpuAliasPtr make_quantized_alias(at::QuantizerPtr quantizer);

/// Returns an alias for a tensor of zeros without data (_efficientzerotensor),
/// which CPU kernels recognize by its dispatch key.
CpuAliasPtr make_zero_alias();

/// Restores the original storage of an alias that uses that of another alias.
void leave_shared_storage(CpuAlias& alias) noexcept;

/// Returns an alias to the pool, unless another object holds a part of it.
/// Aliases that may share storages must all call leave_shared_storage() first.
void recycle(CpuAliasPtr alias) noexcept;

} // namespace openreg::aten
