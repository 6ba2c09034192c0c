// SPDX-License-Identifier: BSD-3-Clause
// Sparse COO tensors: the CPU kernels run on indices and values of the device.
// They have a separate dispatch key, for which the dense fallback is not
// called.
#include "base/keys.h"
#include "base/mechanism.h"
#include "device/device.h"
#include "kernel/boxed.h"
#include "ops/over_composites.h"

#include <ATen/native/DispatchStub.h>
#include <ATen/ops/copy_native.h>
#include <ATen/ops/copy_sparse_to_sparse_native.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/tensor.h>
#include <c10/util/strides.h>

// PyTorch exports this stub, but its installed headers do not declare it.
namespace at::native {
using FlattenIndices = at::Tensor (*)(const at::Tensor&, at::IntArrayRef);
DECLARE_DISPATCH(FlattenIndices, flatten_indices_stub)
} // namespace at::native

namespace openreg::aten {
namespace {

/// A message cannot contain values that overlap in memory, as in an expanded
/// gradient: kernels read one value per element.
void make_from_parts(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  if (!kernels_reach_memory()) {
    const auto arguments = op.schema().arguments().size();
    const auto index = *op.schema().argumentIndexWithName("values");
    c10::IValue& values =
        (*stack)[stack->size() - arguments + static_cast<std::size_t>(index)];
    values = values.toTensor().contiguous();
  }
  run_cpu_kernel<c10::DispatchKey::SparseCPU>(op, stack);
}

/// Returns the position of each index in the dense tensor. PyTorch calls this
/// function to check that the indices are unique and sorted.
at::Tensor flatten_indices(const at::Tensor& indices, at::IntArrayRef size) {
  const auto strides = c10::contiguous_strides(size);
  const at::Tensor factors =
      at::tensor(at::IntArrayRef(strides)).unsqueeze(1).to(indices.device());
  return at::sum(at::mul(indices.to(at::kLong), factors), /*dim=*/0);
}

} // namespace

OPENREG_MECHANISM(
    sparse,
    "TORCH_LIBRARY_IMPL(_, SparsePrivateUse1): fallback",
    "no sparse COO tensors, no sparse gradients") {
  using c10::DispatchKey;
  static auto fallback = OPENREG_LIBRARY_IMPL(_, kSparseKey);
  fallback.fallback(
      torch::CppFunction::makeFromBoxedFunction<
          &run_cpu_kernel<DispatchKey::SparseCPU>>());
  // Copies between devices consist of copies of indices and values.
  static auto library = OPENREG_LIBRARY_IMPL(aten, kSparseKey);
  library.impl("copy_", TORCH_FN(at::native::copy_sparse_wrapper_));
  library.impl(
      "_sparse_coo_tensor_with_dims_and_tensors",
      torch::CppFunction::makeFromBoxedFunction<&make_from_parts>());
  library.impl("copy_sparse_to_sparse_", TORCH_FN(at::native::copy_sparse_));
  register_over_composites<DispatchKey::SparseCPU>(library);
  set_stub(at::native::flatten_indices_stub, &flatten_indices);
}

} // namespace openreg::aten
