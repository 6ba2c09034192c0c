// SPDX-License-Identifier: BSD-3-Clause
// Tensors that are made of other tensors: sparse and nested ones.
#pragma once

#include <ATen/core/Tensor.h>

namespace openreg::aten {

/// Whether `tensor` has dense component tensors instead of a buffer with
/// strides.
inline bool has_components(const at::Tensor& tensor) {
  constexpr c10::DispatchKeySet kKeys(
      {c10::DispatchKey::Sparse,
       c10::DispatchKey::SparseCsr,
       c10::DispatchKey::NestedTensor});
  return tensor.unsafeGetTensorImpl()->key_set().has_any(kKeys);
}

} // namespace openreg::aten
