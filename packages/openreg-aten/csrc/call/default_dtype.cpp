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

bool is_integral(const at::Tensor& tensor) {
  return c10::isIntegralType(tensor.scalar_type(), /*includeBool=*/true);
}

} // namespace

bool has_default_dtype(
    const c10::OperatorHandle& op,
    const ResultPlaces& results,
    const torch::jit::Stack& arguments) {
  const auto dtype = c10::get_default_dtype_as_scalartype();
  return std::any_of(
             results.places.begin(),
             results.places.end(),
             [dtype](const ResultPlaces::Place& place) {
               return place.metadata.defined &&
                   c10::toRealValueType(place.metadata.dtype) == dtype;
             }) &&
      std::all_of(
             arguments.begin(),
             arguments.end(),
             [](const c10::IValue& value) {
               return !value.isTensor() || !value.toTensor().defined() ||
                   is_integral(value.toTensor()) || is_number(value.toTensor());
             }) &&
      info_of(op).promotes;
}

void apply_default_dtype(
    const c10::OperatorHandle& op,
    c10::ScalarType dtype,
    torch::jit::Stack& arguments) {
  std::vector<at::Tensor*> integers;
  std::vector<at::Tensor*> numbers;
  for (const OperatorInfo::Argument& argument : info_of(op).arguments) {
    c10::IValue& value = arguments[argument.index];
    if (!value.isTensor() || !value.toTensor().defined() ||
        op.schema().arguments()[argument.index].name() == "condition") {
      continue;
    }
    at::Tensor& tensor = value.toTensor();
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
