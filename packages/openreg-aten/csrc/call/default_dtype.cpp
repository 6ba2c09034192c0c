// SPDX-License-Identifier: BSD-3-Clause
// PyTorch has one default dtype for all threads, so a worker must not set it.
// The iterator of pointwise operators converts its operands to the promoted
// dtype first. A conversion before the kernel therefore gives the same bits.
#include "call/default_dtype.h"

#include "facts/operator_info.h"

#include <algorithm>

namespace openreg::aten {
namespace {

bool is_number(const at::Tensor& tensor) {
  return tensor.unsafeGetTensorImpl()->is_wrapped_number();
}

/// Whether promotion takes the dtype of a tensor, not the default dtype.
bool decides(const at::Tensor& tensor) {
  return !c10::isIntegralType(tensor.scalar_type(), /*includeBool=*/true) &&
      !is_number(tensor);
}

bool has_default_dtype(const ResultPlaces& results, c10::ScalarType dtype) {
  return std::any_of(
      results.places.begin(),
      results.places.end(),
      [dtype](const ResultPlaces::Place& place) {
        return place.metadata.defined &&
            c10::toRealValueType(place.metadata.dtype) == dtype;
      });
}

} // namespace

void apply_default_dtype(
    const c10::OperatorHandle& op,
    c10::ScalarType dtype,
    const ResultPlaces& results,
    torch::jit::Stack& arguments) {
  const OperatorInfo& info = info_of(op);
  if (!info.promotes || !has_default_dtype(results, dtype)) {
    return;
  }
  std::vector<at::Tensor*> integers;
  std::vector<at::Tensor*> numbers;
  for (const OperatorInfo::Argument& argument : info.arguments) {
    c10::IValue& value = arguments[argument.index];
    if (!value.isTensor() || !value.toTensor().defined() ||
        op.schema().arguments()[argument.index].name() == "condition") {
      continue;
    }
    at::Tensor& tensor = value.toTensor();
    if (decides(tensor)) {
      return;
    }
    (is_number(tensor) ? numbers : integers).push_back(&tensor);
  }
  // where(condition, 1.0, 2.0) has numbers alone.
  for (at::Tensor* tensor : integers.empty() ? numbers : integers) {
    *tensor = tensor->to(
        is_number(*tensor) && tensor->is_complex() ? c10::toComplexType(dtype)
                                                   : dtype);
  }
}

} // namespace openreg::aten
