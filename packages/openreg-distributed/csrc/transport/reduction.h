// SPDX-License-Identifier: BSD-3-Clause
// Maps reductions to the dtypes and operations that gloo supports.
#pragma once

#include <torch/csrc/distributed/c10d/Types.hpp>

namespace openreg::distributed {

/// Throws unless tensors of this dtype support the reduction.
void check_reduction(const c10d::ReduceOp& op, at::ScalarType type);

/// A host memory tensor in a reduction over all ranks.
class Reduction {
 public:
  /// `in_place`: the buffer may use the memory of `input`.
  Reduction(
      const at::Tensor& input,
      const c10d::ReduceOp& op,
      int ranks,
      bool in_place);

  /// A contiguous vector of a dtype that gloo supports.
  const at::Tensor& buffer() const {
    return buffer_;
  }
  /// The operation on the buffer.
  c10d::ReduceOp buffer_op() const {
    return buffer_op_;
  }
  /// Converts element counts of the input to element counts of the buffer.
  std::vector<int64_t> counts(std::vector<int64_t> input_counts) const;
  /// A vector of the buffer's dtype for the result: the memory of `output` if
  /// possible.
  at::Tensor result_for(const at::Tensor& output) const;
  /// Stores reduced elements in `output`.
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
