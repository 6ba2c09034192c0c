// SPDX-License-Identifier: BSD-3-Clause
// An operator that uses PyTorch's stable ABI. The compiled library runs with
// this and later versions of torch.
#include <openreg/openreg.h>

#include <torch/csrc/stable/accelerator.h>
#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/ops.h>
#include <torch/csrc/stable/tensor.h>

#include <cmath>

namespace {

using torch::headeronly::ScalarType;
using torch::stable::Tensor;

void check(orError_t error) {
  STD_TORCH_CHECK(error == orSuccess, orGetErrorMessage());
}

// [docs: kernel]
Tensor stable_abs(Tensor x) {
  STD_TORCH_CHECK(
      x.scalar_type() == ScalarType::Float && x.is_contiguous(),
      "stable_abs: expected a contiguous tensor of float32");
  Tensor output = torch::stable::empty_like(x);
  void* from = nullptr;
  void* to = nullptr;
  check(orGetKernelPointer(&from, x.const_data_ptr()));
  check(orGetKernelPointer(&to, output.mutable_data_ptr()));
  const auto stream =
      torch::stable::accelerator::getCurrentStream(x.get_device_index());
  check(orLaunchKernel(
      static_cast<orStream_t>(stream.nativeHandle()),
      [from = static_cast<const float*>(from),
       to = static_cast<float*>(to),
       count = x.numel()] {
        for (int64_t i = 0; i < count; ++i) {
          to[i] = std::abs(from[i]);
        }
      }));
  return output;
}
// [docs: end]

} // namespace

// [docs: registration]
STABLE_TORCH_LIBRARY_FRAGMENT(demo, m) {
  m.def("stable_abs(Tensor x) -> Tensor");
}

STABLE_TORCH_LIBRARY_IMPL(demo, PrivateUse1, m) {
  m.impl("stable_abs", TORCH_BOX(&stable_abs));
}
// [docs: end]
