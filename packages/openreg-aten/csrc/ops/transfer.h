// SPDX-License-Identifier: BSD-3-Clause
// Copies to, from and between devices whose memory kernels of this process
// cannot access.
//
// Only bytes are transferred. Changes of dtype, layout or shape are copies on
// one of the two sides, before or after the transfer.
#pragma once

#include <ATen/core/Tensor.h>

namespace openreg::aten {

/// Copies between host and device. Returns before the copy is complete if
/// `async` and the host tensor is pinned.
void transfer_with_host(at::Tensor& dst, const at::Tensor& src, bool async);

/// Copies between two devices.
void transfer_between_devices(at::Tensor& dst, const at::Tensor& src);

} // namespace openreg::aten
