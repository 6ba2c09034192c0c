// SPDX-License-Identifier: BSD-3-Clause
// Which operators compute in a wider dtype: kernel/wider.h says how.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>
#include <c10/core/ScalarType.h>

#include <cstdint>

namespace openreg::aten {

constexpr uint64_t dtype_bit(c10::ScalarType dtype) {
  return uint64_t{1} << static_cast<unsigned>(dtype);
}

/// Some operators need more than another dtype. Such a function changes the
/// arguments, which start at `base` and have been cast, and may change the
/// operator.
using Preparation =
    void (*)(c10::OperatorHandle& op, torch::jit::Stack& stack, size_t base);

/// What is known of an operator.
struct WiderDtypes {
  uint64_t refused;        // by the CPU, and not by CUDA: one bit each
  Preparation preparation; // null for most
};
using WiderDtypesOf = WiderDtypes (*)(const c10::OperatorName& name);

/// Gives the list, before any mechanism is enabled.
bool set_wider_dtypes(WiderDtypesOf list);
/// What the list says of an operator.
WiderDtypes wider_dtypes_of(const c10::OperatorName& name);
/// Lets kernels cast: the mechanism.
void use_wider_dtypes();
bool uses_wider_dtypes();

} // namespace openreg::aten
