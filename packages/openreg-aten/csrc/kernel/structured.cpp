// SPDX-License-Identifier: BSD-3-Clause
// Outputs and operands of structured operators.
#include "kernel/structured.h"

#include "device/allocator.h"
#include "device/device.h"

#include <ATen/EmptyTensor.h>

namespace openreg::aten {
namespace {

bool on_device(const at::OperandInfo& operand) {
  return operand.device->type() == c10::kPrivateUse1;
}

/// Converts a scalar of the CPU, as the iterator of CPU tensors does.
void convert_scalar(at::OperandInfo& operand, c10::ScalarType dtype) {
  operand.exchange_tensor(
      c10::MaybeOwned<at::TensorBase>::owned(operand.tensor().to(dtype)));
  operand.data = operand.tensor_base().data_ptr();
  operand.current_dtype = dtype;
  operand.target_dtype = dtype;
}

} // namespace

at::Tensor make_output(
    at::IntArrayRef sizes,
    at::IntArrayRef strides,
    const at::TensorOptions& options) {
  constexpr c10::DispatchKeySet keys(c10::DispatchKey::PrivateUse1);
  const auto dtype = c10::typeMetaToScalarType(options.dtype());
  const CurrentDevice scope(options.device().index());
  auto& allocator = device_allocator();
  return strides.empty()
      ? at::detail::empty_generic(
            sizes, &allocator, keys, dtype, options.memory_format_opt())
      : at::detail::empty_strided_generic(
            sizes, strides, &allocator, keys, dtype);
}

size_t operand_bytes(const c10::SmallVectorImpl<at::OperandInfo>& operands) {
  size_t bytes = 0;
  for (const at::OperandInfo& operand : operands) {
    bytes += operand.tensor_base().nbytes();
  }
  return bytes;
}

bool move_to_cpu(
    c10::SmallVectorImpl<at::OperandInfo>& operands,
    c10::ScalarType common_dtype) {
  const auto converted = [&](const at::OperandInfo& operand) {
    return !operand.is_output && common_dtype != c10::ScalarType::Undefined &&
        operand.current_dtype != common_dtype;
  };
  for (const at::OperandInfo& operand : operands) {
    if (on_device(operand) && converted(operand)) {
      return false;
    }
  }
  for (at::OperandInfo& operand : operands) {
    if (on_device(operand)) {
      operand.data = to_kernel(operand.data);
      operand.device = c10::Device(c10::kCPU);
    } else if (converted(operand)) {
      convert_scalar(operand, common_dtype);
    }
  }
  return true;
}

} // namespace openreg::aten
