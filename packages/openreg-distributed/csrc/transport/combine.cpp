// SPDX-License-Identifier: BSD-3-Clause
// Reduces with PyTorch's CPU operators.
#include "transport/combine.h"

#include <ATen/ATen.h>
#include <c10/util/Exception.h>

#include <cstring>

namespace openreg::distributed {
namespace {

using c10d::ReduceOp;
using Binary = at::Tensor& (*)(
    at::Tensor& out,
    const at::Tensor& one,
    const at::Tensor& other);

Binary function_of(ReduceOp::RedOpType op) {
  switch (op) {
    case ReduceOp::SUM:
      return [](at::Tensor& out, const at::Tensor& one, const at::Tensor& other)
                 -> at::Tensor& { return at::add_out(out, one, other); };
    case ReduceOp::PRODUCT:
      return &at::mul_out;
    case ReduceOp::MIN: // as in NCCL, a number wins over NaN
      return &at::fmin_out;
    case ReduceOp::MAX:
      return &at::fmax_out;
    case ReduceOp::BAND:
      return &at::bitwise_and_out;
    case ReduceOp::BOR:
      return &at::bitwise_or_out;
    case ReduceOp::BXOR:
      return &at::bitwise_xor_out;
    default:
      TORCH_CHECK(false, "occl: unsupported reduction ", int{op});
  }
}

} // namespace

void combine(
    std::byte* result,
    const std::vector<const std::byte*>& inputs,
    size_t size,
    c10::ScalarType type,
    const ReduceOp& op) {
  if (inputs.size() == 1) {
    std::memmove(result, inputs.front(), size);
    return;
  }
  const auto count = static_cast<int64_t>(size / c10::elementSize(type));
  const auto view = [&](const std::byte* data) {
    return at::from_blob(
        const_cast<std::byte*>(data), {count}, at::TensorOptions().dtype(type));
  };
  const Binary function = function_of(op);
  at::Tensor out = view(result);
  function(out, view(inputs[0]), view(inputs[1]));
  for (size_t i = 2; i < inputs.size(); ++i) {
    function(out, out, view(inputs[i]));
  }
}

} // namespace openreg::distributed
