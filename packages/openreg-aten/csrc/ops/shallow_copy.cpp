// SPDX-License-Identifier: BSD-3-Clause
// Decides whether a tensor may become a shallow copy of a tensor on another
// device.
//
// Module.to() and `x.data = y` check this. If it is allowed, a Parameter
// remains the object that optimizers, hooks and tied modules reference, and
// only its data moves. PyTorch's own check has a fixed list of backends without
// PrivateUse1.
#include "base/keys.h"
#include "base/mechanism.h"
#include "extension/tensor_impl.h"

#include <ATen/core/Tensor.h>
#include <torch/library.h>

namespace openreg::aten {
namespace {

/// Strided tensors only. SparseTensorImpl and QTensorImpl check PyTorch's list
/// again when they copy, and fail; SparseCsrTensorImpl would leave its indices
/// and values on the other device.
bool is_strided_on_cpu_or_device(c10::DispatchKeySet keys) {
  const c10::DispatchKeySet backends({c10::BackendComponent::CPUBit, kBackend});
  return keys.has_any(c10::DispatchKeySet(c10::DispatchKey::Dense)) &&
      keys.has_any(backends);
}

// [docs: shallow-copy]
bool has_compatible_shallow_copy_type(
    const at::Tensor& self,
    const at::Tensor& from) {
  c10::TensorImpl& impl = *self.unsafeGetTensorImpl();
  if (tile_shape(self).has_value() != tile_shape(from).has_value()) {
    return false; // a copy cannot change the C++ class
  }
  return (is_strided_on_cpu_or_device(impl.key_set()) &&
          is_strided_on_cpu_or_device(from.key_set())) ||
      (self.device().type() == from.device().type() &&
       impl.has_compatible_shallow_copy_type(from.key_set()));
}
// [docs: end]

} // namespace

OPENREG_MECHANISM(
    shallow_copy,
    "aten::_has_compatible_shallow_copy_type",
    "Module.to() creates new Parameters; x.data = y fails across devices") {
  constexpr const char* kName = "_has_compatible_shallow_copy_type";
  static auto library = OPENREG_LIBRARY_IMPL(aten, kDenseKey);
  library.impl(kName, TORCH_FN(has_compatible_shallow_copy_type));
  // PyTorch's composite kernel runs above the Python key. This one must too,
  // so that __torch_dispatch__ does not receive the operator.
  static auto autograd = OPENREG_LIBRARY_IMPL(aten, kAutogradKey);
  autograd.impl(kName, TORCH_FN(has_compatible_shallow_copy_type));
}

} // namespace openreg::aten
