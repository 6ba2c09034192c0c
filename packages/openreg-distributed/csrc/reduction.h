// SPDX-License-Identifier: BSD-3-Clause
// Reductions that gloo has no type or no operation for, by those that it has.
#pragma once

#include <torch/csrc/distributed/c10d/Types.hpp>

namespace openreg::distributed {

/// Throws unless tensors of this type can be reduced in this way.
void check_reduction(const c10d::ReduceOp& op, at::ScalarType type);

/// One tensor of host memory in a reduction over all ranks.
class Reduction {
 public:
  /// `in_place` lets gloo work on the memory of `input` where it can.
  Reduction(
      const at::Tensor& input,
      const c10d::ReduceOp& op,
      int ranks,
      bool in_place);

  /// A contiguous vector of a type that gloo has; it is to hold the result.
  const at::Tensor& buffer() const {
    return buffer_;
  }
  c10d::ReduceOp gloo_op() const {
    return gloo_op_;
  }
  /// Writes elements of the result from `first` on to `output`.
  void store(const at::Tensor& output, int64_t first = 0) const;

 private:
  c10d::ReduceOp::RedOpType op_;
  c10d::ReduceOp gloo_op_;
  at::ScalarType type_;
  int ranks_;
  bool flipped_ = false; // the sign bits of unsigned numbers, to compare them
  at::Tensor buffer_;
};

} // namespace openreg::distributed
