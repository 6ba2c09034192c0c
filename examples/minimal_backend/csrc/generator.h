// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/stack.h>

namespace torch_minimal {

const at::Generator& default_generator(c10::DeviceIndex device);
at::Generator new_generator(c10::DeviceIndex device);

/// Replaces each generator argument of an operator with a CPU generator, seeded from
/// the device generator.
void replace_generators(const c10::OperatorHandle& op, torch::jit::Stack* stack);

} // namespace torch_minimal
