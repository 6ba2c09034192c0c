// SPDX-License-Identifier: BSD-3-Clause
// The error about tensors that do not lie in their storages. FSDP and
// offloading free memory with untyped_storage().resize_(0) and keep the
// tensors, whose sizes stay as they are. A kernel that got such a tensor would
// run past the end of the memory.
#pragma once

#include "codec/extent.h"
#include "facts/operator_info.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <string_view>

namespace openreg::aten {

/// Throws c10::AcceleratorError with orErrorIllegalAddress for an argument that
/// does not lie in its storage.
[[noreturn]] void throw_outside_storage(
    const c10::TensorImpl& tensor,
    std::string_view op,
    std::string_view argument);

/// Throws that for the first such argument of an operator.
void check_extents(
    const c10::OperatorHandle& op,
    const OperatorInfo& info,
    at::ArrayRef<c10::IValue> arguments);

} // namespace openreg::aten
