// SPDX-License-Identifier: BSD-3-Clause
// torch.autocast: PyTorch's own lists of rules, on the device's key.
#include <ATen/autocast_mode.h>
#include <torch/library.h>

namespace torch_minimal {
namespace {

// [docs: autocast]
// Operators without a rule run as if autocast were off.
TORCH_LIBRARY_IMPL(_, AutocastPrivateUse1, m) {
  m.fallback(torch::CppFunction::makeFallthrough());
}

using at::IntArrayRef, at::Scalar, at::ScalarType,
    at::Tensor; // names used by the lists below

// In float16 a probability near 0 becomes 0, and its logarithm is infinite.
Tensor refuse(const Tensor&, const Tensor&, const std::optional<Tensor>&, int64_t) {
  TORCH_CHECK(false, "binary_cross_entropy is unsafe under torch.autocast: use ",
              "binary_cross_entropy_with_logits, or disable autocast for it");
}

#define LOWER_PRECISION(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, lower_precision_fp)
#define FP32(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, fp32)
#define FP32_SET_OPT_DTYPE(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, fp32_set_opt_dtype)
#define PROMOTE(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, promote)

TORCH_LIBRARY_IMPL(aten, AutocastPrivateUse1, m) {
  AT_FORALL_LOWER_PRECISION_FP(LOWER_PRECISION)
  AT_FORALL_FP32(FP32)
  AT_FORALL_FP32_SET_OPT_DTYPE(FP32_SET_OPT_DTYPE)
  AT_FORALL_DIFFERENT_REDISPATCH_SIGNATURE(KERNEL_DIFFERENT_REDISPATCH_SIGNATURE_PRIVATEUSEONE)
  AT_FORALL_PROMOTE(PROMOTE)
  m.impl("binary_cross_entropy", refuse);
}
// [docs: end]

} // namespace
} // namespace torch_minimal
