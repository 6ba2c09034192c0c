// SPDX-License-Identifier: BSD-3-Clause
// The data that a backend hangs on a tensor, and its way into PyTorch's files.
#include "extension/backend_meta.h"

#include "base/mechanism.h"

#include <torch/csrc/jit/serialization/pickler_helper.h>

namespace openreg::aten {
namespace {

// Never written once a tensor has it: the tensors that PyTorch makes with
// shallow copies, such as that of detach(), can share it, as they do by
// default.
struct Flags final : c10::BackendMeta {
  explicit Flags(TensorFlags flags) : values(std::move(flags)) {}

  const TensorFlags values;
};

void write_flags(const at::Tensor& tensor, TensorFlags& saved) {
  saved.merge(tensor_flags(tensor));
}

// PyTorch has taken what it wrote itself out of the map.
void read_flags(const at::Tensor& tensor, TensorFlags& saved) {
  if (!saved.empty()) {
    set_tensor_flags(tensor, saved);
  }
}

} // namespace

TensorFlags tensor_flags(const at::Tensor& tensor) {
  const auto* flags =
      dynamic_cast<Flags*>(tensor.unsafeGetTensorImpl()->get_backend_meta());
  return flags ? flags->values : TensorFlags();
}

void set_tensor_flags(const at::Tensor& tensor, TensorFlags flags) {
  tensor.unsafeGetTensorImpl()->set_backend_meta(
      c10::make_intrusive<Flags>(std::move(flags)));
}

OPENREG_MECHANISM(
    backend_meta,
    "c10::BackendMeta, torch::jit::TensorBackendMetaRegistry",
    "torch.save drops the flags of a tensor") {
  torch::jit::TensorBackendMetaRegistry(
      c10::kPrivateUse1, &write_flags, &read_flags);
}

} // namespace openreg::aten
