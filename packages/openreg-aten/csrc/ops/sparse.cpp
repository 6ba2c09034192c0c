// SPDX-License-Identifier: BSD-3-Clause
// Sparse COO tensors: the CPU kernels run on indices and values of the device.
// They have a separate dispatch key, for which the dense fallback is not
// called.
#include "base/keys.h"
#include "base/mechanism.h"
#include "device/device.h"
#include "kernel/boxed.h"
#include "ops/over_composites.h"

#include <ATen/ops/_validate_sparse_coo_tensor_args_native.h>
#include <ATen/ops/copy_native.h>
#include <ATen/ops/copy_sparse_to_sparse_native.h>
#include <ATen/ops/zeros.h>

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

/// PyTorch's check of unique and sorted indices needs flatten_indices_stub,
/// which no header declares. It therefore runs on a copy of the indices, with
/// values that need no memory. torch.load() calls it.
void validate_parts(
    const at::Tensor& indices,
    const at::Tensor& values,
    at::IntArrayRef size,
    std::optional<bool> is_coalesced,
    std::optional<bool> check_pinning) {
  at::native::_validate_sparse_coo_tensor_args(
      indices, values, size, /*is_coalesced=*/false, check_pinning);
  if (is_coalesced.value_or(false)) {
    at::native::_validate_sparse_coo_tensor_args(
        indices.cpu(),
        at::zeros({}, values.options().device(at::kCPU)).expand(values.sizes()),
        size,
        is_coalesced,
        /*check_pinning=*/false);
  }
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
  static auto dense = OPENREG_LIBRARY_IMPL(aten, kDenseKey);
  dense.impl("_validate_sparse_coo_tensor_args", TORCH_FN(validate_parts));
}

} // namespace openreg::aten
