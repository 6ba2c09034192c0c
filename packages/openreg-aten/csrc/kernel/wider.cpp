// SPDX-License-Identifier: BSD-3-Clause
// Casts the arguments of a call, calls the operator again, and casts the
// results back.
#include "kernel/wider.h"

#include "alias/extent.h"
#include "base/keys.h"

#include <ATen/MemoryOverlap.h>
#include <ATen/core/LegacyTypeDispatch.h>

#include <unordered_map>
#include <utility>
#include <vector>

namespace openreg::aten {
namespace {

using c10::ScalarType;
using torch::jit::Stack;

std::unordered_map<std::string, Preparation>& preparations() {
  static auto* value = new std::unordered_map<std::string, Preparation>;
  return *value;
}

/// Returns the next wider dtype with a kernel, which represents all values of
/// `dtype`.
ScalarType wider(ScalarType dtype) {
  switch (dtype) {
    case ScalarType::Bool:
      return ScalarType::Byte;
    case ScalarType::Half:
    case ScalarType::BFloat16:
      return ScalarType::Float;
    case ScalarType::ComplexHalf:
      return ScalarType::ComplexFloat;
    default:
      return c10::isIntegralType(dtype, /*includeBool=*/false)
          ? ScalarType::Double
          : dtype;
  }
}

/// The casts of one call, and their inverse casts.
class Casts {
 public:
  explicit Casts(const OperatorInfo& info) : widened_(info.widened_dtypes) {
    // An operator may also have real results for complex tensors, or real
    // tensors with complex numbers.
    if ((widened_ & dtype_bit(ScalarType::ComplexHalf)) != 0) {
      widened_ |= dtype_bit(ScalarType::Half);
    }
  }

  bool has(ScalarType dtype) const {
    return (widened_ & dtype_bit(dtype)) != 0 && wider(dtype) != dtype;
  }
  at::Tensor widen(const at::Tensor& tensor) {
    if (!tensor.defined() || !has(tensor.scalar_type())) {
      return tensor;
    }
    return tensor.to(widen(tensor.scalar_type()));
  }
  ScalarType widen(ScalarType dtype) {
    if (has(dtype)) {
      narrow_ = dtype;
    }
    return has(dtype) ? wider(dtype) : dtype;
  }
  at::Tensor narrow(const at::Tensor& result) const {
    if (!result.defined()) {
      return result;
    }
    const ScalarType dtype = result.scalar_type();
    if (c10::toRealValueType(narrow_) == ScalarType::Half) {
      return dtype == ScalarType::Float ? result.to(ScalarType::Half)
          : dtype == ScalarType::ComplexFloat
          ? result.to(ScalarType::ComplexHalf)
          : result;
    }
    return narrow_ != dtype && dtype == wider(narrow_) ? result.to(narrow_)
                                                       : result;
  }

 private:
  uint64_t widened_;
  ScalarType narrow_ = ScalarType::Undefined;
};

} // namespace

void check_overlap(
    const OperatorInfo& info,
    at::ArrayRef<c10::IValue> arguments) {
  for (const auto& argument : info.arguments) {
    const c10::IValue& written = arguments[argument.index];
    if (!argument.written || !written.isTensor()) {
      continue;
    }
    at::assert_no_internal_overlap(written.toTensor());
    for (const auto& each : info.arguments) {
      const c10::IValue& other = arguments[each.index];
      if (other.isTensor() && other.toTensor().defined()) {
        at::assert_no_partial_overlap(written.toTensor(), other.toTensor());
      }
    }
  }
}

void copy_back(
    const OperatorInfo& info,
    at::ArrayRef<c10::IValue> arguments,
    at::ArrayRef<c10::IValue> copies) {
  for (const auto& argument : info.arguments) {
    const c10::IValue& original = arguments[argument.index];
    const c10::IValue& copy = copies[argument.index];
    if (!argument.written || !original.isTensor() || original.is(copy)) {
      continue;
    }
    const at::Tensor& tensor = original.toTensor();
    const at::Tensor& result = copy.toTensor();
    if (tensor.sizes() != result.sizes()) {
      tensor.resize_(result.sizes());
      if (tensor.strides() != result.strides()) {
        tensor.as_strided_(result.sizes(), result.strides());
      }
    }
    tensor.copy_(result);
  }
}

namespace {

/// Whether the CPU kernel accepts tensors of several dtypes: data of one dtype,
/// and parameters or statistics of one dtype, which is the same or float32.
bool mixes_as_on_cpu(
    const c10::OperatorHandle& op,
    const OperatorInfo& info,
    at::ArrayRef<c10::IValue> arguments) {
  uint64_t data = 0;
  uint64_t rest = 0;
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (!arguments[i].isTensor() || !arguments[i].toTensor().defined() ||
        !arguments[i].toTensor().is_floating_point()) {
      continue;
    }
    const std::string& name = op.schema().arguments()[i].name();
    const bool is_data = info.follows_parameters
        ? name == "input" || name.starts_with("grad_out")
        : name != "logsumexp";
    (is_data ? data : rest) |= dtype_bit(arguments[i].toTensor().scalar_type());
  }
  return std::has_single_bit(data) &&
      (rest == 0 || rest == data || rest == dtype_bit(ScalarType::Float));
}

class WidenedCall {
 public:
  WidenedCall(const c10::OperatorHandle& op, Stack& stack)
      : op_(op),
        info_(info_of(op)),
        stack_(stack),
        base_(stack.size() - info_.argument_count),
        casts_(info_) {}

  void run() {
    const std::vector<c10::IValue> originals = arguments();
    check_extents(op_, info_, originals);
    check_overlap(info_, originals);
    widen_arguments();
    const std::vector<c10::IValue> widened = arguments();
    call();
    copy_back(info_, originals, widened);
    const size_t first = stack_.size() - info_.returned.size();
    for (size_t i = 0; i < info_.returned.size(); ++i) {
      c10::IValue& result = stack_[first + i];
      const int32_t source = info_.returned[i];
      result = source >= 0
          ? originals[info_.arguments[static_cast<size_t>(source)].index]
          : casts_.narrow(result.toTensor());
    }
  }

  /// The kernels of composite operators run above autograd, others below.
  bool is_composite() const {
    return op_.hasKernelForDispatchKey(
        c10::DispatchKey::CompositeImplicitAutograd);
  }

 private:
  std::vector<c10::IValue> arguments() const {
    return {stack_.begin() + static_cast<std::ptrdiff_t>(base_), stack_.end()};
  }

  void call() {
    c10::OperatorHandle op = op_;
    const auto prepare = preparations().find(op_.operator_name().name);
    if (prepare != preparations().end()) {
      prepare->second(op, stack_, base_);
    }
    if (is_composite()) {
      op.callBoxed(stack_);
    } else {
      op.redispatchBoxed(kDenseKeySet, &stack_);
    }
  }

  void widen_arguments() {
    for (const auto& argument : info_.arguments) {
      c10::IValue& value = stack_[base_ + argument.index];
      if (value.isTensor()) {
        value = casts_.widen(value.toTensor());
      }
    }
    const auto& arguments = op_.schema().arguments();
    for (size_t i = 0; i < arguments.size(); ++i) {
      c10::IValue& value = stack_[base_ + i];
      if (arguments[i].name() == "dtype" && value.isInt()) {
        value = casts_.widen(value.toScalarType());
      }
    }
  }

  const c10::OperatorHandle& op_;
  const OperatorInfo& info_;
  Stack& stack_;
  const size_t base_;
  Casts casts_;
};

} // namespace

void prepare_wider(const std::string& name, Preparation preparation) {
  preparations()[name] = preparation;
}

Widening widening_of(
    const c10::OperatorHandle& op,
    const OperatorInfo& info,
    const Stack& stack) {
  if (C10_LIKELY(info.widened_dtypes == 0)) {
    return Widening::kNone;
  }
  ComputedDtype dtype(info);
  const auto& arguments = op.schema().arguments();
  const size_t base = stack.size() - info.argument_count;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const c10::IValue& value = stack[base + i];
    if (value.isTensor()) {
      dtype.visit(value.toTensor());
    } else if (arguments[i].name() == "dtype" && value.isInt()) {
      dtype.visit(value.toScalarType());
    } else if (arguments[i].type()->kind() == c10::TypeKind::NumberType) {
      dtype.visit(value.toScalar());
    }
  }
  const Widening widening = dtype.widening();
  return widening == Widening::kInKernel && info.mixes_dtypes &&
          !mixes_as_on_cpu(
              op, info, at::ArrayRef<c10::IValue>(stack).slice(base))
      ? Widening::kNone
      : widening;
}

void run_wider(const c10::OperatorHandle& op, Stack* stack) {
  WidenedCall call(op, *stack);
  if (call.is_composite()) {
    call.run();
  } else {
    const at::AutoDispatchBelowADInplaceOrView below_autograd;
    const c10::impl::ExcludeDispatchKeyGuard below_autocast(
        c10::autocast_dispatch_keyset);
    call.run();
  }
}

} // namespace openreg::aten
