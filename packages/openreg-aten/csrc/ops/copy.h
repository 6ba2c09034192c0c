// SPDX-License-Identifier: BSD-3-Clause
// Copies between two tensors, at least one of which is on the device.
#pragma once

#include <ATen/core/Tensor.h>

namespace openreg::aten {

/// Copies as the CPU's copy_ does, in the order of the device stream. Returns
/// before the copy is complete if `non_blocking` and one of the tensors is
/// pinned.
at::Tensor&
copy_tensor(at::Tensor& self, const at::Tensor& src, bool non_blocking);

} // namespace openreg::aten
