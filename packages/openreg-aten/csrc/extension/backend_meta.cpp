// SPDX-License-Identifier: BSD-3-Clause
// Attaches backend data to tensors, and saves it in PyTorch's files.
#include "extension/backend_meta.h"

#include "base/keys.h"
#include "base/mechanism.h"

#include <torch/csrc/jit/serialization/pickler_helper.h>

namespace openreg::aten {
namespace {

// Immutable once attached, so that shallow copies of the tensor, such as
// detach(), can share it. Sharing is the default of PyTorch.
struct Flags final : c10::BackendMeta {
  explicit Flags(TensorFlags flags) : values(std::move(flags)) {}

  const TensorFlags values;
};

void write_flags(const at::Tensor& tensor, TensorFlags& saved) {
  saved.merge(tensor_flags(tensor));
}

// PyTorch has already removed its own entries from the map.
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

OPENREG_MECHANISM_OF_PRIVATEUSE1(
    backend_meta,
    "c10::BackendMeta, torch::jit::TensorBackendMetaRegistry",
    "torch.save drops the flags of a tensor") {
  torch::jit::TensorBackendMetaRegistry(kDeviceType, &write_flags, &read_flags);
}

} // namespace openreg::aten
