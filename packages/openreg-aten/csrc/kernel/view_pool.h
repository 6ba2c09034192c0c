// SPDX-License-Identifier: BSD-3-Clause
// Tensor objects for views of device memory, used again by kernel after kernel.
//
// Making and freeing a tensor and its storage is four pairs of malloc and free,
// a fifth of what a small operator costs.
#pragma once

#include <ATen/core/QuantizerBase.h>
#include <ATen/core/Tensor.h>
#include <c10/core/Storage.h>

#include <memory>

namespace openreg::aten {

/// A CPU tensor and a storage of its own, which it may leave for another's.
struct View {
  at::Tensor tensor;
  c10::Storage storage;
};
using ViewPtr = std::unique_ptr<View>;

/// A view with any geometry, dtype and flags, over any data.
ViewPtr take_view();

/// The same for a quantized tensor, never used again.
ViewPtr make_quantized_view(at::QuantizerPtr quantizer);

/// The same for a tensor of zeros without data (_efficientzerotensor): kernels
/// of the CPU know it by its dispatch key.
ViewPtr make_zero_view();

/// Takes a view out of the storage of another, if it moved there.
void leave_shared_storage(View& view) noexcept;

/// Gives a view back, for use again if nobody else holds a part of it. Views
/// that may share storages leave them first, all of them.
void give_back(ViewPtr view) noexcept;

} // namespace openreg::aten
