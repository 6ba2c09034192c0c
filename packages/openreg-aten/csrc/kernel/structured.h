// SPDX-License-Identifier: BSD-3-Clause
// Structured pointwise operators, run by PyTorch's own parts on device tensors.
//
// A structured operator has two halves: meta() makes an iterator over the
// operands, for which metadata is enough, and impl() calls the DispatchStub of
// the iterator's device. Between the two the iterator is told that its operands
// are the CPU's, at the addresses where kernels find them. So there is no view
// of any tensor, and the output is the device's from the start.
#pragma once

#include "kernel/kernel.h"
#include "kernel/roads.h"
#include "kernel/typed.h"

#include <ATen/TensorIterator.h>

namespace openreg::aten {

/// A new tensor for an operator's output, on the device of `options`.
at::Tensor make_output(
    at::IntArrayRef sizes,
    at::IntArrayRef strides,
    const at::TensorOptions& options);

/// Tells the operands of an iterator that they are the CPU's. False if the
/// iterator of CPU tensors would convert one, which only that can do.
bool move_to_cpu(
    c10::SmallVectorImpl<at::OperandInfo>& operands,
    c10::ScalarType common_dtype);

/// One call of a structured operator with one output.
template <typename Structured>
class StructuredCall final : public Structured {
 public:
  StructuredCall() = default;
  explicit StructuredCall(const at::Tensor& self)
      : in_place_(true), output_(c10::MaybeOwned<at::Tensor>::borrowed(self)) {}

  void set_output_raw_strided(
      int64_t index,
      at::IntArrayRef sizes,
      at::IntArrayRef strides,
      at::TensorOptions options) override {
    if (in_place_) {
      fits_ = options.dtype() == output_->dtype() && sizes == output_->sizes();
    } else {
      output_ = c10::MaybeOwned<at::Tensor>::owned(
          make_output(sizes, strides, options));
    }
    Structured::set_output_raw_strided(index, sizes, strides, options);
  }
  const at::Tensor& maybe_get_output(int64_t) override {
    return *output_;
  }

  // [docs: structured-run]
  /// Runs impl() with the arguments of the operator, in stream order; false if
  /// this is not possible.
  template <typename... Args>
  bool run(const Args&... args) {
    const c10::Device device = this->common_device_;
    if (!fits_ || !move_to_cpu(this->operands_, this->common_dtype_)) {
      return false;
    }
    this->common_device_ = c10::Device(c10::kCPU);
    run_on_current_stream(device.index(), [&] {
      const KernelScope scope(device.index());
      this->impl(args..., *output_);
    });
    return true;
  }
  // [docs: end]
  at::Tensor take_output() {
    return std::move(*output_);
  }

 private:
  bool in_place_ = false;
  bool fits_ = true;
  c10::MaybeOwned<at::Tensor> output_ =
      c10::MaybeOwned<at::Tensor>::owned(std::in_place);
};

template <
    typename Operator,
    typename Structured,
    typename Schema = typename Operator::schema>
struct StructuredKernel;

/// The kernel of `Operator`, one of at::_ops, by `Structured`, its class in
/// at::native, and the typed kernel where that does not fit.
template <typename Operator, typename Structured, typename... Args>
struct StructuredKernel<Operator, Structured, at::Tensor(Args...)> {
  static at::Tensor run(Args... args) {
    StructuredCall<Structured> call;
    call.meta(args...);
    if (C10_UNLIKELY(!call.run(args...))) {
      return TypedKernel<Operator>::run(args...);
    }
    count_call<Operator>(Road::kStructured);
    return call.take_output();
  }
};

/// The same in place.
template <typename Operator, typename Structured, typename... Args>
struct StructuredKernel<
    Operator,
    Structured,
    at::Tensor&(at::Tensor&, Args...)> {
  static at::Tensor& run(at::Tensor& self, Args... args) {
    StructuredCall<Structured> call(self);
    call.meta(self, args...);
    if (C10_UNLIKELY(!call.run(self, args...))) {
      return TypedKernel<Operator>::run(self, args...);
    }
    count_call<Operator>(Road::kStructured);
    return self;
  }
};

} // namespace openreg::aten
