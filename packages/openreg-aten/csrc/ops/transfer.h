// SPDX-License-Identifier: BSD-3-Clause
// Copies to, from and between devices whose memory no kernel here reaches.
//
// Only bytes travel: what changes dtype, layout or shape is a copy on one of
// the two sides, before or after that.
#pragma once

#include <ATen/core/Tensor.h>

namespace openreg::aten {

/// Between host and device; returns before it is completed if `async` and the
/// host's tensor is pinned.
void transfer_with_host(at::Tensor& dst, const at::Tensor& src, bool async);

/// Between two devices.
void transfer_between_devices(at::Tensor& dst, const at::Tensor& src);

} // namespace openreg::aten
