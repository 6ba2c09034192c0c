// SPDX-License-Identifier: BSD-3-Clause
// The copy between any two tensors, of which one is the device's.
#pragma once

#include <ATen/core/Tensor.h>

namespace openreg::aten {

/// Does what the CPU's copy_ does, in the order of the device's stream; returns
/// before it is completed if `non_blocking` and one of the two is pinned.
at::Tensor&
copy_tensor(at::Tensor& self, const at::Tensor& src, bool non_blocking);

} // namespace openreg::aten
