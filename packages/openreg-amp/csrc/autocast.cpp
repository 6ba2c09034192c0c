// SPDX-License-Identifier: BSD-3-Clause
// Autocast kernels: PyTorch's own casting wrappers, on AutocastPrivateUse1.
#include "autocast.h"

#include "torch_version.h"

#include <ATen/autocast_mode.h>
#include <torch/library.h>

namespace openreg::amp {
namespace {

at::Tensor binary_cross_entropy_banned(
    const at::Tensor& /*self*/,
    const at::Tensor& /*target*/,
    const std::optional<at::Tensor>& /*weight*/,
    int64_t /*reduction*/) {
  TORCH_CHECK(
      false,
      "torch.nn.functional.binary_cross_entropy and torch.nn.BCELoss are "
      "unsafe "
      "to autocast: the logarithm of a float16 probability overflows. Replace "
      "the sigmoid and the loss by "
      "torch.nn.functional.binary_cross_entropy_with_logits or "
      "torch.nn.BCEWithLogitsLoss, which are safe, or compute the loss in "
      "float32 under torch.autocast(..., enabled=False).");
}

// Never destroyed: the kernels must outlive all threads that may call them
// during interpreter shutdown.
torch::Library& library(const char* ns, uint32_t line) {
  return *new torch::Library(
      torch::Library::IMPL,
      ns,
      c10::DispatchKey::AutocastPrivateUse1,
      __FILE_NAME__,
      line);
}

} // namespace

void register_autocast() {
  // Without it an operator without a rule would not have a kernel.
  library("_", __LINE__).fallback(torch::CppFunction::makeFallthrough());

  // PyTorch's lists use these names in signatures.
  using at::IntArrayRef;
  using at::Scalar;
  using at::ScalarType;
  using at::Tensor;
  auto& m = library("aten", __LINE__);
#define OPENREG_RULE(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__)
#define OPENREG_APPEND_DTYPE_RULE(...) \
  KERNEL_DIFFERENT_REDISPATCH_SIGNATURE_PRIVATEUSEONE(__VA_ARGS__)
#define OPENREG_BANNED(op) \
  m.impl(TORCH_SELECTIVE_NAME("aten::" #op), TORCH_FN(op##_banned));
#include "rules.def"
}

} // namespace openreg::amp
