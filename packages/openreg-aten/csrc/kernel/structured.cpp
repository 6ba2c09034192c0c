// SPDX-License-Identifier: BSD-3-Clause
// Outputs and operands of structured operators.
#include "kernel/structured.h"

#include "base/keys.h"
#include "device/device.h"
#include "memory/tensor.h"

#include <algorithm>

namespace openreg::aten {
namespace {

bool on_device(const at::OperandInfo& operand) {
  return operand.device->type() == kDeviceType;
}

bool is_converted(
    const at::OperandInfo& operand,
    c10::ScalarType common_dtype) {
  return !operand.is_output && common_dtype != c10::ScalarType::Undefined &&
      operand.current_dtype != common_dtype;
}

/// Converts a CPU scalar, as the iterator over CPU tensors does.
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
  const auto dtype = c10::typeMetaToScalarType(options.dtype());
  const c10::DeviceIndex device = options.device().index();
  return strides.empty()
      ? make_tensor(device, sizes, dtype, options.memory_format_opt())
      : make_strided_tensor(device, sizes, strides, dtype);
}

size_t operand_bytes(const c10::SmallVectorImpl<at::OperandInfo>& operands) {
  size_t bytes = 0;
  for (const at::OperandInfo& operand : operands) {
    bytes += operand.tensor_base().nbytes();
  }
  return bytes;
}

bool converts_on_device(
    const c10::SmallVectorImpl<at::OperandInfo>& operands,
    c10::ScalarType common_dtype) {
  return std::any_of(
      operands.begin(), operands.end(), [&](const at::OperandInfo& operand) {
        return on_device(operand) && is_converted(operand, common_dtype);
      });
}

bool has_host_operand(const c10::SmallVectorImpl<at::OperandInfo>& operands) {
  return !std::all_of(operands.begin(), operands.end(), &on_device);
}

bool lie_in_storages(const c10::SmallVectorImpl<at::OperandInfo>& operands) {
  return std::all_of(
      operands.begin(), operands.end(), [](const at::OperandInfo& operand) {
        return operand.is_output || // it is new, or also an input
            lies_in_storage(*operand.tensor_base().unsafeGetTensorImpl());
      });
}

void move_to_cpu(
    c10::SmallVectorImpl<at::OperandInfo>& operands,
    c10::ScalarType common_dtype) {
  for (at::OperandInfo& operand : operands) {
    if (on_device(operand)) {
      operand.data = to_kernel(operand.data);
      operand.device = c10::Device(c10::kCPU);
    } else if (is_converted(operand, common_dtype)) {
      convert_scalar(operand, common_dtype);
    }
  }
}

} // namespace openreg::aten
