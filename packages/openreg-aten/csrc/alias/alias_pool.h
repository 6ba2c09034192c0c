// SPDX-License-Identifier: BSD-3-Clause
// The tensor objects of CPU aliases, used again by kernel after kernel.
//
// Making and freeing a tensor and its storage is four pairs of malloc and free,
// a fifth of what a small operator costs.
#pragma once

#include <ATen/core/QuantizerBase.h>
#include <ATen/core/Tensor.h>
#include <c10/core/Storage.h>

#include <memory>

namespace openreg::aten {

/// A CPU tensor over the memory of a device tensor, and a storage of its own,
/// which it may leave for another's.
struct CpuAlias {
  at::Tensor tensor;
  c10::Storage storage;
};
using CpuAliasPtr = std::unique_ptr<CpuAlias>;

/// An alias with any geometry, dtype and flags, over any data.
CpuAliasPtr take_alias();

/// The same for a quantized tensor, never used again.
CpuAliasPtr make_quantized_alias(at::QuantizerPtr quantizer);

/// The same for a tensor of zeros without data (_efficientzerotensor): kernels
/// of the CPU know it by its dispatch key.
CpuAliasPtr make_zero_alias();

/// Takes an alias out of the storage of another, if it moved there.
void leave_shared_storage(CpuAlias& alias) noexcept;

/// Gives an alias back, for use again if nobody else holds a part of it.
/// Aliases that may share storages leave them first, all of them.
void give_back(CpuAliasPtr alias) noexcept;

} // namespace openreg::aten
