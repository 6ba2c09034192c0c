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
  /// `in_place` lets the buffer be the memory of `input`.
  Reduction(
      const at::Tensor& input,
      const c10d::ReduceOp& op,
      int ranks,
      bool in_place);

  /// A contiguous vector of a type that gloo has.
  const at::Tensor& buffer() const {
    return buffer_;
  }
  /// What is to be done with it.
  c10d::ReduceOp buffer_op() const {
    return buffer_op_;
  }
  /// How many elements of the buffer so many elements of the input are.
  std::vector<int64_t> counts(std::vector<int64_t> input_counts) const;
  /// A vector of the buffer's type for what `output` is to get: its memory if
  /// that will do.
  at::Tensor result_for(const at::Tensor& output) const;
  /// Brings reduced elements to `output`.
  void store(const at::Tensor& output, const at::Tensor& result) const;

 private:
  c10d::ReduceOp::RedOpType op_;
  c10d::ReduceOp buffer_op_;
  at::ScalarType type_; // of the input
  int ranks_;
  bool flipped_ = false; // the sign bits of unsigned numbers, to compare them
  at::Tensor buffer_;
};

} // namespace openreg::distributed
