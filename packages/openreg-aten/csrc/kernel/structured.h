// SPDX-License-Identifier: BSD-3-Clause
// Structured pointwise operators, run by PyTorch's own parts on device tensors.
//
// A structured operator has two halves: meta() makes an iterator over the
// operands, for which metadata is enough, and impl() calls the DispatchStub of
// the iterator's device. Between the two the iterator is told that its operands
// are the CPU's, at the addresses where kernels find them. So there is no alias
// of any tensor, and the output is the device's from the start.
#pragma once

#include "kernel/dispatch_paths.h"
#include "kernel/enqueue.h"
#include "kernel/kernel.h"
#include "kernel/typed.h"
#include "kernel/wider.h"

#include <ATen/TensorIterator.h>

#include <atomic>
#include <cstdint>

namespace openreg::aten {

/// A new tensor for an operator's output, on the device of `options`.
at::Tensor make_output(
    at::IntArrayRef sizes,
    at::IntArrayRef strides,
    const at::TensorOptions& options);

/// Bytes of all elements of the operands.
size_t operand_bytes(const c10::SmallVectorImpl<at::OperandInfo>& operands);

/// Whether the iterator of CPU tensors would convert one that is the device's,
/// which only that can do.
bool converts_on_device(
    const c10::SmallVectorImpl<at::OperandInfo>& operands,
    c10::ScalarType common_dtype);

/// Whether a dtype has a number: a kernel refuses those that it has not.
bool has_number(c10::ScalarType dtype, const c10::Scalar& value);
template <typename Argument>
bool has_number(c10::ScalarType, const Argument&) {
  return true;
}

/// Tells the operands of an iterator that they are the CPU's. False if it would
/// convert one that is the device's.
bool move_to_cpu(
    c10::SmallVectorImpl<at::OperandInfo>& operands,
    c10::ScalarType common_dtype);

/// Dtypes with which an operator has run.
class DtypeSet {
 public:
  bool has(c10::ScalarType dtype) const {
    return (bits_.load(std::memory_order_relaxed) & bit(dtype)) != 0;
  }
  bool may_have(c10::ScalarType dtype, bool refuses_floats) const {
    return has(dtype) ||
        (refuses_floats ? dtype == c10::ScalarType::Long
                        : dtype == c10::ScalarType::Float ||
                 dtype == c10::ScalarType::Double);
  }
  void add(c10::ScalarType dtype) {
    if (C10_UNLIKELY(!has(dtype))) {
      bits_.fetch_or(bit(dtype), std::memory_order_relaxed);
    }
  }

 private:
  static uint64_t bit(c10::ScalarType dtype) {
    return uint64_t{1} << static_cast<unsigned>(dtype);
  }
  std::atomic<uint64_t> bits_{0};
};

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
  /// Whether this call is to be enqueued instead. A kernel says no to dtypes
  /// that it does not have, so it has run before with this one, or has it
  /// surely.
  template <typename... Args>
  bool is_for_later(
      const OperatorInfo& info,
      const DtypeSet& known,
      const Args&... args) const {
    const c10::Device device = this->common_device_;
    return fits_ && known.may_have(dtype(), info.refuses_floats) &&
        !converts_on_device(this->operands_, this->common_dtype_) &&
        (has_number(dtype(), args) && ...) &&
        enqueues(device.index(), operand_bytes(this->operands_));
  }
  /// Whether the stream is busy and the typed kernel has to find out whether
  /// the CPU's kernel accepts this call.
  template <typename... Args>
  bool is_for_dry_run(
      const OperatorInfo& info,
      const DtypeSet& known,
      const Args&... args) const {
    return C10_UNLIKELY(
               !known.may_have(dtype(), info.refuses_floats) ||
               !(has_number(dtype(), args) && ...)) &&
        is_busy(this->common_device_.index());
  }
  /// The dtype that the kernel computes in.
  c10::ScalarType dtype() const {
    return this->common_dtype_ != c10::ScalarType::Undefined
        ? this->common_dtype_
        : this->operands_[1].current_dtype;
  }
  c10::DeviceIndex device() const {
    return this->common_device_.index();
  }
  at::Tensor take_output() {
    return std::move(*output_);
  }

 private:
  bool in_place_ = false;
  bool fits_ = true;
  c10::MaybeOwned<at::Tensor> output_ =
      c10::MaybeOwned<at::Tensor>::owned(std::in_place);
};

/// Whether the CPU has no kernel for a dtype, with which none has run then.
template <typename Operator>
bool refuses(const DtypeSet& known, c10::ScalarType dtype) {
  return C10_UNLIKELY(!known.has(dtype)) &&
      is_refused(TypedKernel<Operator>::info(), dtype);
}

template <
    typename Operator,
    typename Structured,
    typename Schema = typename Operator::schema>
struct StructuredKernel;

/// The kernel of `Operator`, one of at::_ops, by `Structured`, its class in
/// at::native, and the typed kernel where that does not fit.
template <typename Operator, typename Structured, typename... Args>
struct StructuredKernel<Operator, Structured, at::Tensor(Args...)> {
  static inline DtypeSet dtypes;

  static at::Tensor run(Args... args) {
    StructuredCall<Structured> call;
    call.meta(args...);
    if (C10_UNLIKELY(refuses<Operator>(dtypes, call.dtype()))) {
      return WiderCall<Operator>::run(
          TypedKernel<Operator>::handle(), static_cast<Args&&>(args)...);
    }
    if (call.is_for_later(TypedKernel<Operator>::info(), dtypes, args...)) {
      const c10::DeviceIndex device = call.device();
      at::Tensor result = call.take_output();
      TypedKernel<Operator>::enqueue_into(
          device, {result}, /*digest=*/0, args...);
      return result;
    }
    if (call.is_for_dry_run(TypedKernel<Operator>::info(), dtypes, args...)) {
      at::Tensor result = TypedKernel<Operator>::run(args...);
      dtypes.add(call.dtype());
      return result;
    }
    if (C10_UNLIKELY(!call.run(args...))) {
      return TypedKernel<Operator>::run(args...);
    }
    dtypes.add(call.dtype());
    count_call<Operator>(DispatchPath::kStructured);
    return call.take_output();
  }
};

/// The same in place.
template <typename Operator, typename Structured, typename... Args>
struct StructuredKernel<
    Operator,
    Structured,
    at::Tensor&(at::Tensor&, Args...)> {
  static inline DtypeSet dtypes;

  static at::Tensor& run(at::Tensor& self, Args... args) {
    StructuredCall<Structured> call(self);
    call.meta(self, args...);
    if (C10_UNLIKELY(refuses<Operator>(dtypes, call.dtype()))) {
      return WiderCall<Operator>::run(
          TypedKernel<Operator>::handle(), self, static_cast<Args&&>(args)...);
    }
    if (call.is_for_later(TypedKernel<Operator>::info(), dtypes, args...)) {
      TypedKernel<Operator>::enqueue_into(
          call.device(), {}, /*digest=*/0, self, args...);
      return self;
    }
    if (call.is_for_dry_run(TypedKernel<Operator>::info(), dtypes, args...)) {
      TypedKernel<Operator>::run(self, args...);
      dtypes.add(call.dtype());
      return self;
    }
    if (C10_UNLIKELY(!call.run(self, args...))) {
      return TypedKernel<Operator>::run(self, args...);
    }
    dtypes.add(call.dtype());
    count_call<Operator>(DispatchPath::kStructured);
    return self;
  }
};

} // namespace openreg::aten
