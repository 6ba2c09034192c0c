// SPDX-License-Identifier: BSD-3-Clause
// gloo has floats of 16 to 64 bits and integers of 8, 32 and 64, and no AVG.
#include "transport/reduction.h"

#include <ATen/ATen.h>

#include <limits>

namespace openreg::distributed {
namespace {

using c10d::ReduceOp;

bool is_bitwise(ReduceOp::RedOpType op) {
  return op == ReduceOp::BAND || op == ReduceOp::BOR || op == ReduceOp::BXOR;
}

/// The dtype in which a type is computed. Unsigned sums and products wrap to
/// the same bits as signed ones.
at::ScalarType wide_type(at::ScalarType type) {
  switch (type) {
    case at::kBool:
      return at::kByte;
    case at::kShort:
    case at::kUInt16:
      return at::kInt;
    case at::kUInt32:
    case at::kUInt64:
      return at::kLong;
    default:
      return c10::isFloat8Type(type) ? at::kFloat : type;
  }
}

ReduceOp::RedOpType gloo_type(ReduceOp::RedOpType op, at::ScalarType type) {
  if (op == ReduceOp::AVG || op == ReduceOp::PREMUL_SUM) {
    return ReduceOp::SUM;
  }
  if (type != at::kBool) {
    return op;
  }
  switch (op) {
    case ReduceOp::SUM: // a sum of bytes would be 2
    case ReduceOp::BOR:
      return ReduceOp::MAX;
    case ReduceOp::PRODUCT:
    case ReduceOp::BAND:
      return ReduceOp::MIN;
    default:
      return op;
  }
}

at::Tensor multiply(const at::Tensor& input, const ReduceOp& op) {
  const auto* factor =
      dynamic_cast<const c10d::PreMulSumSupplement*>(op.supplement_.get());
  TORCH_CHECK(factor != nullptr, "occl: PREMUL_SUM has no factor");
  if (!factor->tensor_factor.defined()) {
    return input.mul(factor->double_factor).to(input.scalar_type());
  }
  const at::Tensor tensor = factor->tensor_factor.reshape({});
  return input.mul(tensor).to(input.scalar_type());
}

at::Tensor flip_sign_bits(const at::Tensor& tensor) {
  return tensor.bitwise_xor(std::numeric_limits<int64_t>::min());
}

} // namespace

void check_reduction(const ReduceOp& op, at::ScalarType type) {
  const ReduceOp::RedOpType kind = op;
  TORCH_CHECK(
      !c10::isQIntType(type) && !c10::isBitsType(type) &&
          type != at::kFloat4_e2m1fn_x2,
      "occl: tensors of type ",
      type,
      " cannot be reduced");
  TORCH_CHECK(
      !c10::isComplexType(type) || kind == ReduceOp::SUM ||
          kind == ReduceOp::AVG || kind == ReduceOp::PREMUL_SUM,
      "occl: complex tensors can be reduced with SUM, AVG and PREMUL_SUM only");
  TORCH_CHECK(
      !is_bitwise(kind) || c10::isIntegralType(type, true),
      "occl: bitwise reductions need integers, but the tensor has type ",
      type);
  TORCH_CHECK(
      kind != ReduceOp::AVG || (type != at::kBool && type != at::kUInt64),
      "occl: tensors of type ",
      type,
      " cannot be reduced with AVG");
  TORCH_CHECK(
      kind != ReduceOp::PREMUL_SUM || c10::isFloatingType(type) ||
          c10::isComplexType(type),
      "occl: PREMUL_SUM needs floating-point tensors, but this one has type ",
      type);
}

Reduction::Reduction(
    const at::Tensor& input,
    const ReduceOp& op,
    int ranks,
    bool in_place)
    : op_(op),
      buffer_op_(gloo_type(op_, input.scalar_type())),
      type_(input.scalar_type()),
      ranks_(ranks) {
  at::Tensor value = input;
  if (op_ == ReduceOp::PREMUL_SUM) {
    value =
        multiply(c10::isFloat8Type(type_) ? value.to(at::kFloat) : value, op);
  }
  if (c10::isComplexType(type_)) {
    value = at::view_as_real(value);
  }
  if (type_ == at::kUInt64) {
    value = value.contiguous().view(at::kLong);
  } else {
    value = value.to(wide_type(value.scalar_type()));
  }
  flipped_ =
      type_ == at::kUInt64 && (op_ == ReduceOp::MIN || op_ == ReduceOp::MAX);
  if (flipped_) {
    value = flip_sign_bits(value);
  }
  value = value.contiguous();
  if (!in_place && value.data_ptr() == input.data_ptr()) {
    value = value.clone();
  }
  buffer_ = value.reshape({-1});
}

std::vector<int64_t> Reduction::counts(
    std::vector<int64_t> input_counts) const {
  if (c10::isComplexType(type_)) {
    for (int64_t& count : input_counts) {
      count *= 2;
    }
  }
  return input_counts;
}

at::Tensor Reduction::result_for(const at::Tensor& output) const {
  if (output.is_contiguous() && output.scalar_type() == buffer_.scalar_type()) {
    return output.view({-1});
  }
  return at::empty(counts({output.numel()}), buffer_.options());
}

void Reduction::store(const at::Tensor& output, const at::Tensor& result)
    const {
  const bool complex = c10::isComplexType(type_);
  at::Tensor value = result;
  if (op_ == ReduceOp::AVG) {
    value = c10::isIntegralType(value.scalar_type(), false)
        ? value.div(ranks_, "trunc")
        : value.div_(ranks_);
  }
  if (flipped_) {
    value = flip_sign_bits(value);
  }
  if (type_ == at::kUInt64) {
    value = value.view(at::kUInt64);
  }
  if (complex) {
    value = at::view_as_complex(value.reshape({-1, 2}));
  }
  if (output.is_contiguous() && value.data_ptr() == output.data_ptr() &&
      value.scalar_type() == output.scalar_type()) {
    return;
  }
  output.copy_(value.reshape(output.sizes()));
}

} // namespace openreg::distributed
