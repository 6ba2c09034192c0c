// SPDX-License-Identifier: BSD-3-Clause
// Tensors of the host among the arguments of an operator.
#pragma once

#include "kernel/operator_info.h"

#include <ATen/core/Tensor.h>

namespace openreg::aten {

/// Whether a defined tensor may stand beside those of the device although it is
/// not the device's. As on CUDA, this is a tensor of the CPU that is only read,
/// and that holds indices, lengths or the like, or is a number for an operator
/// that takes those.
inline bool is_accepted_from_host(
    const at::Tensor& tensor,
    const OperatorInfo::Argument& argument) {
  return tensor.is_cpu() && !argument.written &&
      (tensor.dim() == 0 ? argument.takes_number : argument.takes_host);
}

} // namespace openreg::aten
