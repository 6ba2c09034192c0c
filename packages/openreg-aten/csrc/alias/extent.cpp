// SPDX-License-Identifier: BSD-3-Clause
// Checks the storage of each tensor argument.
#include "alias/extent.h"

#include "base/keys.h"

#include <openreg/openreg.h>

#include <ATen/EmptyTensor.h>
#include <c10/util/Exception.h>

namespace openreg::aten {
void throw_outside_storage(
    const c10::TensorImpl& tensor,
    std::string_view op,
    std::string_view argument) {
  const size_t needed = at::detail::computeStorageNbytes(
      tensor.sizes(),
      tensor.strides(),
      tensor.itemsize(),
      static_cast<size_t>(tensor.storage_offset()));
  throw c10::AcceleratorError(
      {__func__, __FILE__, __LINE__},
      orErrorIllegalAddress,
      c10::str(
          kErrorName,
          " error: ",
          orGetErrorString(orErrorIllegalAddress),
          " (",
          orGetErrorName(orErrorIllegalAddress),
          "): ",
          op,
          ": argument ",
          argument,
          ", a tensor of ",
          tensor.device(),
          " with shape ",
          tensor.sizes(),
          ", strides ",
          tensor.strides(),
          " and dtype ",
          tensor.dtype().name(),
          ", needs ",
          needed,
          " bytes of its storage, which has ",
          tensor.storage().nbytes(),
          ". Resize the storage before the call, with "
          "tensor.untyped_storage().resize_(",
          needed,
          ")"));
}

void check_extents(
    const c10::OperatorHandle& op,
    const OperatorInfo& info,
    at::ArrayRef<c10::IValue> arguments) {
  for (const OperatorInfo::Argument& argument : info.arguments) {
    const auto check = [&](const c10::IValue& value) {
      if (!value.isTensor() || !value.toTensor().has_storage()) {
        return;
      }
      const c10::TensorImpl& impl = *value.toTensor().unsafeGetTensorImpl();
      if (!lies_in_storage(impl)) {
        throw_outside_storage(
            impl,
            toString(op.operator_name()),
            op.schema().arguments()[argument.index].name());
      }
    };
    const c10::IValue& value = arguments[argument.index];
    if (value.isTensorList() || value.isOptionalTensorList()) {
      for (const c10::IValue& each : value.toListRef()) {
        check(each);
      }
    } else {
      check(value);
    }
  }
}

} // namespace openreg::aten
