// SPDX-License-Identifier: BSD-3-Clause
// abs, with the DispatchStub that PyTorch's own abs.out calls for the device.
#include "base/keys.h"
#include "base/mechanism.h"
#include "kernel/structured.h"
#include "kernel/wider.h"

#include <ATen/TensorIterator.h>
#include <ATen/native/UnaryOps.h>
#include <ATen/ops/abs_native.h>
#include <ATen/ops/abs_ops.h>
#include <torch/library.h>

namespace openreg::aten {
namespace {

/// PyTorch has checked the operands of `iter` and resized the output. The
/// kernel of a real device would iterate over them; this one calls the CPU
/// kernel.
void abs_kernel(at::TensorIteratorBase& iter) {
  using AbsCall = TypedCall<at::_ops::abs_out>;
  const OperatorInfo& info = AbsCall::schema_info();
  const c10::ScalarType dtype = iter.dtype(1);
  at::Tensor out = iter.tensor(0);
  const at::Tensor self = iter.tensor(1);
  if (C10_UNLIKELY(is_widened(info, dtype))) {
    WiderCall<at::_ops::abs_out>::run(AbsCall::handle(), self, out);
    return;
  }
  AbsCall call(iter.device().index(), self, out, DispatchPath::kStub);
  static DtypeSet dtypes;
  if (dtypes.has(dtype) ||
      certainly_supports(dtype, /*refuses_floats=*/false)) {
    call.bytes_if_known = out.nbytes() + self.nbytes();
  }
  submit(call);
  dtypes.add(dtype);
}

} // namespace

OPENREG_MECHANISM(
    stub,
    "DispatchStub: abs_stub",
    "abs runs the boxed CPU kernel") {
  static auto library = OPENREG_LIBRARY_IMPL(aten, kDenseKey);
  library.impl("abs.out", TORCH_FN(at::native::abs_out));
  set_stub(at::native::abs_stub, &abs_kernel);
}

} // namespace openreg::aten
