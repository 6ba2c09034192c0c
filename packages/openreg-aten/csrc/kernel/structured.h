// SPDX-License-Identifier: BSD-3-Clause
// Runs structured pointwise operators on device tensors with PyTorch's own
// parts.
//
// A structured operator has two halves: meta() builds an iterator over the
// operands and needs only their metadata, and impl() calls the DispatchStub for
// the device of the iterator. Between the two, the operands of the iterator are
// marked as CPU tensors at their kernel addresses. This needs no aliases, and
// the output is a device tensor from the start.
#pragma once

#include "alias/extent.h"
#include "facts/numbers.h"
#include "facts/operators.h"
#include "kernel/typed.h"
#include "kernel/wider.h"

#include <ATen/TensorIterator.h>

#include <atomic>
#include <cstdint>

namespace openreg::aten {

/// Returns a new tensor for an output, on the device of `options`.
at::Tensor make_output(
    at::IntArrayRef sizes,
    at::IntArrayRef strides,
    const at::TensorOptions& options);

/// Returns the bytes of all elements of the operands.
size_t operand_bytes(const c10::SmallVectorImpl<at::OperandInfo>& operands);

/// Whether the iterator would convert an operand that is on the device. Only an
/// iterator over CPU tensors can convert it.
bool converts_on_device(
    const c10::SmallVectorImpl<at::OperandInfo>& operands,
    c10::ScalarType common_dtype);

/// Whether an operand is a host tensor.
bool has_host_operand(const c10::SmallVectorImpl<at::OperandInfo>& operands);

/// Arguments of other types are not numbers, so kernels accept them.
template <typename Argument>
bool can_represent(c10::ScalarType, const Argument&) {
  return true;
}

/// Whether all operands lie in their storages.
bool lie_in_storages(const c10::SmallVectorImpl<at::OperandInfo>& operands);

/// Marks the operands of an iterator as CPU tensors.
void move_to_cpu(
    c10::SmallVectorImpl<at::OperandInfo>& operands,
    c10::ScalarType common_dtype);

/// Whether a kernel supports a dtype in any case.
inline bool certainly_supports(c10::ScalarType dtype, bool refuses_floats) {
  return refuses_floats
      ? dtype == c10::ScalarType::Long
      : dtype == c10::ScalarType::Float || dtype == c10::ScalarType::Double;
}

/// The dtypes with which an operator has already run.
class DtypeSet {
 public:
  bool has(c10::ScalarType dtype) const {
    return (bits_.load(std::memory_order_relaxed) & bit(dtype)) != 0;
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

/// The iterator of a structured operator with one output.
template <typename Structured>
class Iterator final : public Structured {
 public:
  Iterator() = default;
  explicit Iterator(const at::Tensor& self)
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

  /// Whether impl() can run on device memory.
  bool can_run() const {
    return fits_ && !converts_on_device(this->operands_, this->common_dtype_);
  }
  /// Whether an operand is a host scalar.
  bool has_host_operand() const {
    return openreg::aten::has_host_operand(this->operands_);
  }
  bool lies_in_storages() const {
    return lie_in_storages(this->operands_);
  }
  /// Moves the operands to the CPU, for impl().
  void move_to_cpu() {
    openreg::aten::move_to_cpu(this->operands_, this->common_dtype_);
    this->common_device_ = c10::Device(c10::kCPU);
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
  size_t bytes() const {
    return operand_bytes(this->operands_);
  }
  at::Tensor take_output() {
    return std::move(*output_);
  }
  /// Frees the output, so that nothing else of the iterator may be used.
  void drop_output() {
    output_ = c10::MaybeOwned<at::Tensor>::owned(std::in_place);
  }

 private:
  bool in_place_ = false;
  bool fits_ = true;
  c10::MaybeOwned<at::Tensor> output_ =
      c10::MaybeOwned<at::Tensor>::owned(std::in_place);
};

/// A call that an iterator runs.
template <typename Operator, typename Structured, typename... Args>
class StructuredCall final : public TypedCall<Operator> {
 public:
  StructuredCall(Iterator<Structured>& iterator, const Args&... args)
      : TypedCall<Operator>(
            iterator.device(),
            args...,
            DispatchPath::kStructured),
        iterator_(iterator) {}

  bool allocates_first() const override {
    return true;
  }
  // [docs: structured-run]
  void alias() override {
    if (C10_UNLIKELY(!iterator_.lies_in_storages())) {
      check_extents(this->op(), this->info(), this->arguments()); // throws
    }
    iterator_.move_to_cpu();
  }
  void run() override {
    this->with_arguments([&](const Args&... args) {
      iterator_.impl(args..., iterator_.maybe_get_output(0));
    });
  }
  // [docs: end]
  void adopt() override {
    if constexpr (TypedCall<Operator>::kMakesTensors) {
      this->made_ = iterator_.take_output();
    }
  }
  std::vector<at::Tensor> made() const override {
    if constexpr (TypedCall<Operator>::kMakesTensors) {
      return {this->made_ ? *this->made_ : iterator_.maybe_get_output(0)};
    } else {
      return {};
    }
  }

 private:
  Iterator<Structured>& iterator_;
};

template <
    typename Operator,
    typename Structured,
    typename Schema = typename Operator::schema>
struct StructuredKernel;

/// The kernel of `Operator`, an operator of at::_ops. Runs `Structured`, its
/// class in at::native, or the typed kernel if `Structured` cannot run on the
/// arguments.
template <
    typename Operator,
    typename Structured,
    typename Result,
    typename... Args>
struct StructuredKernel<Operator, Structured, Result(Args...)> {
  using OperatorCall = TypedCall<Operator>;
  static constexpr bool kInPlace = std::is_reference_v<Result>;
  static inline DtypeSet dtypes;

  static Result run(Args... args) {
    const OperatorInfo& info = OperatorCall::schema_info();
    auto iterator = make_iterator(args...);
    iterator.meta(args...);
    const c10::ScalarType dtype = iterator.dtype();
    const bool has_run = dtypes.has(dtype);
    if (C10_UNLIKELY(!has_run && is_widened(info, dtype))) {
      iterator.drop_output();
      return WiderCall<Operator>::run(
          OperatorCall::handle(), static_cast<Args&&>(args)...);
    }
    static const bool rejects_scalar =
        checks_devices(OperatorCall::handle().schema().name());
    if (C10_UNLIKELY(
            !iterator.can_run() ||
            (rejects_scalar && iterator.has_host_operand()))) {
      iterator.drop_output();
      return TypedKernel<Operator>::run(static_cast<Args&&>(args)...);
    }
    StructuredCall<Operator, Structured, std::decay_t<Args>...> call(
        iterator, args...);
    // A kernel rejects unsupported dtypes. The output is therefore certain only
    // if the kernel has run with this dtype, or supports it in any case.
    if (C10_LIKELY(
            (has_run || certainly_supports(dtype, info.refuses_floats)) &&
            (can_represent(dtype, args) && ...))) {
      call.bytes_if_known = iterator.bytes();
      call.may_raise = c10::isIntegralType(dtype, /*includeBool=*/false);
    }
    submit(call);
    dtypes.add(dtype);
    if constexpr (kInPlace) {
      return written_arguments<Result>(static_cast<Args&&>(args)...);
    } else {
      return call.take_result();
    }
  }

 private:
  template <typename First, typename... Rest>
  static auto make_iterator(const First& first, const Rest&...) {
    if constexpr (kInPlace) {
      return Iterator<Structured>(first);
    } else {
      return Iterator<Structured>();
    }
  }
};

} // namespace openreg::aten
