// SPDX-License-Identifier: BSD-3-Clause
// The error about tensors that extend past the end of their storage. FSDP and
// offloading free memory with untyped_storage().resize_(0) and keep the tensors
// with their sizes. A kernel would then access memory that is no longer
// allocated.
#pragma once

#include "codec/extent.h"
#include "facts/operator_info.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <string_view>

namespace openreg::aten {

/// Throws c10::AcceleratorError with orErrorIllegalAddress for an argument that
/// extends past the end of its storage.
[[noreturn]] void throw_outside_storage(
    const c10::TensorImpl& tensor,
    std::string_view op,
    std::string_view argument);

/// Checks the arguments of an operator, and throws that error for the first one
/// that extends past the end of its storage.
void check_extents(
    const c10::OperatorHandle& op,
    const OperatorInfo& info,
    at::ArrayRef<c10::IValue> arguments);

} // namespace openreg::aten
