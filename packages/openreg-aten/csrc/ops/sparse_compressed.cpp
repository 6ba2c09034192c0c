// SPDX-License-Identifier: BSD-3-Clause
// Sparse tensors in the compressed formats CSR, CSC, BSR and BSC.
#include "base/keys.h"
#include "base/mechanism.h"
#include "ops/over_composites.h"

#include <ATen/ops/copy_native.h>

namespace openreg::aten {

OPENREG_MECHANISM(
    sparse_compressed,
    "TORCH_LIBRARY_IMPL(_, SparseCsrPrivateUse1): fallback",
    "sparse CSR, CSC, BSR and BSC tensors can be created but not used") {
  using c10::DispatchKey;
  static auto fallback = OPENREG_LIBRARY_IMPL(_, kSparseCsrKey);
  fallback.fallback(
      torch::CppFunction::makeFromBoxedFunction<
          &run_cpu_kernel<DispatchKey::SparseCsrCPU>>());
  static auto library = OPENREG_LIBRARY_IMPL(aten, kSparseCsrKey);
  library.impl("copy_", TORCH_FN(at::native::copy_sparse_compressed_));
  register_over_composites<DispatchKey::SparseCsrCPU>(library);
}

} // namespace openreg::aten
