// SPDX-License-Identifier: BSD-3-Clause
// Registers the boxed kernel for dense operators with a CPU kernel and a
// composite kernel, and for operators whose composite kernel works for the CPU
// but not for an unknown device.
#include "base/keys.h"
#include "base/mechanism.h"
#include "ops/cuda_operators.h"
#include "ops/over_composites.h"

namespace openreg::aten {
namespace {

// Composite kernels that check the device type, call a DispatchStub, or read
// the memory of their arguments.
constexpr const char* kOnlyOnTheCPU[] = {
    "_saturate_weight_to_fp16",
    "choose_qparams_optimized",
    "conj_physical_",
    "fbgemm_linear_fp16_weight",
    "fbgemm_linear_fp16_weight.out",
    "fbgemm_linear_fp16_weight_fp32_activation",
    "fbgemm_linear_fp16_weight_fp32_activation.out",
    "fbgemm_linear_int8_weight",
    "fbgemm_linear_int8_weight_fp32_activation",
    "fbgemm_linear_quantize_weight",
    "fbgemm_pack_gemm_matrix_fp16",
    "fbgemm_pack_quantized_matrix",
    "fbgemm_pack_quantized_matrix.KN",
    "kaiser_window",
    "kaiser_window.beta",
    "kaiser_window.periodic",
    "mode.values",
};

} // namespace

OPENREG_MECHANISM_LAST(
    composite,
    "TORCH_LIBRARY_IMPL(aten, PrivateUse1): over composite kernels",
    "operators with CPU and composite kernels round differently than on CPU") {
  using c10::DispatchKey;
  static auto library = OPENREG_LIBRARY_IMPL(aten, kDenseKey);
  for (const char* name : kOnlyOnTheCPU) {
    library.impl(
        name, torch::CppFunction::makeFromBoxedFunction<&run_cpu_kernel<>>());
  }
  if (kIsCuda) {
    add_cuda_operators(library);
  }
  register_over_composites<DispatchKey::CPU>(library);
}

} // namespace openreg::aten
