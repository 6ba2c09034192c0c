// SPDX-License-Identifier: BSD-3-Clause
// Operators in a wider dtype, where CUDA has a kernel and the CPU has none.
//
// ops/wider_dtypes.cpp lists operators and dtypes. A kernel of the device asks
// first whether its call is among them, which costs all other operators one
// comparison. If it is, the arguments are cast, the operator is called again,
// and its results are cast back.
#pragma once

#include "facts/operator_info.h"
#include "facts/wider_dtypes.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/boxing/KernelFunction.h>
#include <ATen/core/stack.h>
#include <ATen/native/TypeProperties.h>

#include <cstdint>
#include <optional>

namespace openreg::aten {

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
  // Sizes and the like. No operator of the list takes lists of tensors.
  template <typename Other>
  void see(const Other&) {}

  /// Whether it is a dtype that the CPU has no kernel for.
  bool is_refused() const {
    const uint64_t computed = given_ != 0 ? given_
        : info_.promotes ? dtype_bit(at::native::result_type(promoted_))
                         : tensors_;
    return (computed & info_.refused_dtypes) != 0 && uses_wider_dtypes();
  }

 private:
  const OperatorInfo& info_;
  at::native::ResultTypeState promoted_;
  uint64_t tensors_ = 0;
  uint64_t given_ = 0;
};

/// Whether the list has the operator that `info` describes with a dtype, or
/// these arguments.
inline bool is_refused(const OperatorInfo& info, c10::ScalarType dtype) {
  return C10_UNLIKELY((info.refused_dtypes & dtype_bit(dtype)) != 0) &&
      uses_wider_dtypes();
}
template <typename... Args>
bool computes_in_refused(const OperatorInfo& info, const Args&... args) {
  if (C10_LIKELY(info.refused_dtypes == 0)) {
    return false;
  }
  ComputedDtype dtype(info);
  (dtype.see(args), ...);
  return dtype.is_refused();
}
bool computes_in_refused(
    const c10::OperatorHandle& op,
    const OperatorInfo& info,
    const torch::jit::Stack& stack);

/// Calls `op`, with its arguments on `stack`, in a wider dtype, and leaves the
/// results on `stack`, in the dtypes that they are expected in.
void run_wider(
    const c10::OperatorHandle& op,
    c10::DispatchKeySet keys,
    torch::jit::Stack* stack);

/// The same for one of at::_ops.
template <typename Operator, typename Schema = typename Operator::schema>
struct WiderCall;
template <typename Operator, typename Result, typename... Args>
struct WiderCall<Operator, Result(Args...)> {
  C10_NOINLINE static Result run(const c10::OperatorHandle& op, Args... args) {
    static const auto kernel = c10::BoxedKernel::makeFromFunction<&run_wider>();
    return c10::impl::BoxedKernelWrapper<Result(Args...)>::call(
        kernel,
        op,
        c10::DispatchKeySet(c10::DispatchKey::PrivateUse1),
        static_cast<Args&&>(args)...);
  }
};

} // namespace openreg::aten
