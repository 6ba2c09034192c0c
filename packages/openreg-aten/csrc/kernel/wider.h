// SPDX-License-Identifier: BSD-3-Clause
// Computes operators in a wider dtype: where CUDA has a kernel and the CPU does
// not, and where the CPU kernel for 16-bit floats is slow.
//
// facts/operators.cpp lists operators and dtypes. A device kernel first checks
// whether its call is listed, which costs all other operators one comparison.
// For a listed call, the arguments are cast, the operator is called again, and
// its results are cast back. The device thereby computes as CUDA does, which
// accumulates 16-bit floats in float32 and rounds once. Where the CPU has a
// kernel, a single kernel casts, computes and casts back.
#pragma once

#include "facts/operator_info.h"
#include "facts/operators.h"
#include "facts/wider_dtypes.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/stack.h>
#include <ATen/native/TypeProperties.h>

#include <bit>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace openreg::aten {

/// Prepares operators for which a cast is not sufficient. It changes the
/// arguments, which start at `base` and have been cast, and may replace the
/// operator.
using Preparation =
    void (*)(c10::OperatorHandle& op, torch::jit::Stack& stack, size_t base);
/// Registers a preparation for all overloads of an operator.
void prepare_wider(const std::string& name, Preparation preparation);

enum class Widening : uint8_t {
  kNone,
  kByCasts,  // the device casts, because the CPU has no kernel
  kInKernel, // one kernel casts and computes, because the CPU kernel is slow
};

/// Determines the dtype that a call computes in: its argument `dtype`, else the
/// dtype of its tensors. For pointwise operators it is the promoted dtype.
class ComputedDtype {
 public:
  explicit ComputedDtype(const OperatorInfo& info) : info_(info) {}

  void visit(const at::Tensor& tensor) {
    if (!tensor.defined()) {
      return;
    }
    tensors_ |= dtype_bit(tensor.scalar_type());
    if (info_.promotes) {
      promoted_ = at::native::update_result_type_state(tensor, promoted_);
    }
  }
  void visit(const c10::Scalar& scalar) {
    if (info_.promotes) {
      promoted_ = at::native::update_result_type_state(scalar, promoted_);
    }
  }
  void visit(c10::ScalarType dtype) {
    given_ = dtype_bit(dtype);
  }
  template <typename Value>
  void visit(const std::optional<Value>& value) {
    if (value) {
      visit(*value);
    }
  }
  // Sizes and the like. Only the kernels of RNN layers take lists of tensors,
  // and ops/rnn_layers.cpp casts these.
  template <typename Other>
  void visit(const Other&) {}

  Widening widening() const {
    const uint64_t computed = given_ != 0 ? given_
        : info_.promotes ? dtype_bit(at::native::result_type(promoted_))
                         : tensors_;
    if ((computed & info_.widened_dtypes & ~info_.slow_dtypes) != 0) {
      return uses_wider_dtypes() ? Widening::kByCasts : Widening::kNone;
    }
    if ((computed & info_.slow_dtypes) == 0 || !uses_float32_kernels()) {
      return Widening::kNone;
    }
    // The CPU kernel raises its own error for other dtypes.
    constexpr uint64_t kFloats = dtype_bit(c10::ScalarType::Half) |
        dtype_bit(c10::ScalarType::BFloat16) |
        dtype_bit(c10::ScalarType::Float) | dtype_bit(c10::ScalarType::Double);
    return std::has_single_bit(
               info_.promotes ? tensors_ & kFloats : tensors_) ||
            info_.mixes_dtypes
        ? Widening::kInKernel
        : Widening::kNone;
  }

 private:
  const OperatorInfo& info_;
  at::native::ResultTypeState promoted_;
  uint64_t tensors_ = 0;
  uint64_t given_ = 0;
};

/// Whether the operator that `info` describes is widened for a dtype, or for
/// these arguments.
inline bool is_widened(const OperatorInfo& info, c10::ScalarType dtype) {
  return C10_UNLIKELY((info.widened_dtypes & dtype_bit(dtype)) != 0) &&
      ((info.slow_dtypes & dtype_bit(dtype)) != 0 ? uses_float32_kernels()
                                                  : uses_wider_dtypes());
}
template <typename... Args>
bool computes_wider(const OperatorInfo& info, const Args&... args) {
  if (C10_LIKELY(info.widened_dtypes == 0)) {
    return false;
  }
  ComputedDtype dtype(info);
  (dtype.visit(args), ...);
  return dtype.widening() != Widening::kNone;
}
Widening widening_of(
    const c10::OperatorHandle& op,
    const OperatorInfo& info,
    const torch::jit::Stack& stack);

/// Calls `op` in a wider dtype, with its arguments on `stack`. Leaves the
/// results on `stack`, in the dtypes that the caller expects.
void run_wider(const c10::OperatorHandle& op, torch::jit::Stack* stack);

/// Throws for arguments with overlapping memory, which a kernel must not write
/// to. The kernel itself cannot check this, because it writes to copies.
void check_overlap(
    const OperatorInfo& info,
    at::ArrayRef<c10::IValue> arguments);
/// Copies values and sizes from the copies back to the written arguments.
void copy_back(
    const OperatorInfo& info,
    at::ArrayRef<c10::IValue> arguments,
    at::ArrayRef<c10::IValue> copies);

/// Defines operators that compute the operators `names` in float32 for slow
/// dtypes: one per overload, with a CPU kernel.
void add_float32_kernels(const std::vector<std::string>& names);
/// Returns the float32 operator for `op`, or null.
const c10::OperatorHandle* float32_kernel_of(const c10::OperatorHandle& op);

} // namespace openreg::aten
