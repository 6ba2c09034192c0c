// SPDX-License-Identifier: BSD-3-Clause
// Operators in a wider dtype: where CUDA has a kernel and the CPU has none, and
// where the CPU's kernel for 16-bit floats is slow.
//
// facts/operators.cpp lists operators and dtypes. A kernel of the device asks
// first whether its call is among them, which costs all other operators one
// comparison. If it is, the arguments are cast, the operator is called again,
// and its results are cast back: the device computes as CUDA does, which
// accumulates 16-bit floats in float32, and rounds once. Where the CPU has a
// kernel, one kernel casts, computes and casts back.
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

/// Some operators need more than another dtype. Such a function changes the
/// arguments, which start at `base` and have been cast, and may change the
/// operator.
using Preparation =
    void (*)(c10::OperatorHandle& op, torch::jit::Stack& stack, size_t base);
/// Prepares the calls of all overloads of an operator.
void prepare_wider(const std::string& name, Preparation preparation);

enum class Widening : uint8_t {
  kNone,
  kByCasts,  // the device casts: the CPU has no kernel
  kInKernel, // one kernel casts and computes: the CPU's is slow
};

/// Collects what decides in which dtype a call computes: its argument `dtype`,
/// else its tensors; of pointwise operators what they promote to.
class ComputedDtype {
 public:
  explicit ComputedDtype(const OperatorInfo& info) : info_(info) {}

  void see(const at::Tensor& tensor) {
    if (!tensor.defined()) {
      return;
    }
    tensors_ |= dtype_bit(tensor.scalar_type());
    if (info_.promotes) {
      promoted_ = at::native::update_result_type_state(tensor, promoted_);
    }
  }
  void see(const c10::Scalar& scalar) {
    if (info_.promotes) {
      promoted_ = at::native::update_result_type_state(scalar, promoted_);
    }
  }
  void see(c10::ScalarType dtype) {
    given_ = dtype_bit(dtype);
  }
  template <typename Value>
  void see(const std::optional<Value>& value) {
    if (value) {
      see(*value);
    }
  }
  // Sizes and the like. No kernel takes lists of tensors but the RNN layers,
  // which ops/rnn_layers.cpp casts.
  template <typename Other>
  void see(const Other&) {}

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
    // What the CPU's kernel refuses is its error.
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

/// Whether the operator that `info` describes is widened with a dtype, or with
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
  (dtype.see(args), ...);
  return dtype.widening() != Widening::kNone;
}
Widening widening_of(
    const c10::OperatorHandle& op,
    const OperatorInfo& info,
    const torch::jit::Stack& stack);

/// Calls `op`, with its arguments on `stack`, in a wider dtype, and leaves the
/// results on `stack`, in the dtypes that they are expected in.
void run_wider(const c10::OperatorHandle& op, torch::jit::Stack* stack);

/// Refuses arguments whose memory a kernel must not write to. It is not asked:
/// it writes to copies of them.
void check_overlap(
    const OperatorInfo& info,
    at::ArrayRef<c10::IValue> arguments);
/// Gives the arguments that an operator writes the values and sizes of their
/// copies.
void copy_back(
    const OperatorInfo& info,
    at::ArrayRef<c10::IValue> arguments,
    at::ArrayRef<c10::IValue> copies);

/// Defines operators of ours that compute in float32 what `names` compute in a
/// slow dtype: one for each overload, with a kernel for the CPU.
void add_float32_kernels(const std::vector<std::string>& names);
/// The one for `op`; null if there is none.
const c10::OperatorHandle* float32_kernel_of(const c10::OperatorHandle& op);

} // namespace openreg::aten
