// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/stack.h>

namespace torch_minimal {

const at::Generator& default_generator(c10::DeviceIndex device);
at::Generator new_generator(c10::DeviceIndex device);

/// Makes the generators among the arguments of an operator ones of the CPU,
/// whose numbers follow from those of the device.
void replace_generators(const c10::OperatorHandle& op, torch::jit::Stack* stack);

} // namespace torch_minimal
