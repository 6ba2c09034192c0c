// SPDX-License-Identifier: BSD-3-Clause
// The views without composite kernels. They only create new geometry over the
// same storage, so PyTorch's own functions work on every device.
#include "base/keys.h"
#include "base/mechanism.h"

#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/unfold_native.h>
#include <ATen/ops/view_as_complex_native.h>
#include <ATen/ops/view_as_real_native.h>
#include <ATen/ops/view_native.h>
#include <torch/library.h>

namespace openreg::aten {

OPENREG_MECHANISM(
    view,
    "TORCH_LIBRARY_IMPL(aten, PrivateUse1): views",
    "views wait for the stream; a fallback that copies loses writes") {
  static auto library = OPENREG_LIBRARY_IMPL(aten, kDenseKey);
  library.impl("as_strided", TORCH_FN(at::native::as_strided_tensorimpl));
  library.impl("view", TORCH_FN(at::native::view));
  library.impl("_reshape_alias", TORCH_FN(at::native::_reshape_alias));
  library.impl("unfold", TORCH_FN(at::native::unfold));
  library.impl("view_as_real", TORCH_FN(at::native::view_as_real));
  library.impl("view_as_complex", TORCH_FN(at::native::view_as_complex));
}

} // namespace openreg::aten
