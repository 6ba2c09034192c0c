// SPDX-License-Identifier: BSD-3-Clause
// abs, through the function that PyTorch's own abs.out asks the device for.
#include "kernel/cpu_aliases.h"
#include "kernel/dispatch_paths.h"
#include "kernel/kernel.h"
#include "kernel/structured.h"
#include "kernel/wider.h"
#include "mechanism.h"

#include <ATen/TensorIterator.h>
#include <ATen/native/UnaryOps.h>
#include <ATen/ops/abs_native.h>
#include <ATen/ops/abs_ops.h>
#include <torch/library.h>

namespace openreg::aten {
namespace {

/// PyTorch has checked the operands of `iter` and resized the output. A kernel
/// of a real device would walk over them; this one gives them to the CPU's.
void abs_kernel(at::TensorIteratorBase& iter) {
  static const auto op = c10::Dispatcher::singleton().findSchemaOrThrow(
      at::_ops::abs_out::name, at::_ops::abs_out::overload_name);
  if (C10_UNLIKELY(is_refused(info_of(op), iter.dtype(1)))) {
    at::Tensor out = iter.tensor(0);
    WiderCall<at::_ops::abs_out>::run(op, iter.tensor(1), out);
    return;
  }
  const c10::DeviceIndex device = iter.device().index();
  static DtypeSet dtypes;
  if (dtypes.may_have(iter.dtype(1), /*refuses_floats=*/false) &&
      enqueues(device, iter.tensor(0).nbytes() + iter.tensor(1).nbytes())) {
    at::Tensor out = iter.tensor(0);
    TypedKernel<at::_ops::abs_out>::enqueue_into(
        device, {}, /*digest=*/0, iter.tensor(1), out);
    return;
  }
  if (counts_paths()) {
    count_path({"aten::abs", "out"}, DispatchPath::kStub);
  }
  CpuAliases aliases(device);
  at::Tensor& out = aliases.alias(iter.tensor(0), /*written=*/true);
  const at::Tensor& self = aliases.alias(iter.tensor(1), /*written=*/false);
  run_on_current_stream(device, [&] {
    const KernelScope scope(device);
    at::_ops::abs_out::redispatch(
        c10::DispatchKeySet(c10::DispatchKey::CPU), self, out);
  });
  dtypes.add(iter.dtype(1));
}

} // namespace

OPENREG_MECHANISM(
    stub,
    "DispatchStub: abs_stub",
    "abs takes the boxed kernel") {
  static auto library = MAKE_TORCH_LIBRARY_IMPL(aten, PrivateUse1);
  library.impl("abs.out", TORCH_FN(at::native::abs_out));
  at::native::abs_stub.set_privateuse1_dispatch_ptr(&abs_kernel);
}

} // namespace openreg::aten
