// SPDX-License-Identifier: BSD-3-Clause
// Runs operators and changes their replies before the host reads them, to test
// how the host handles invalid replies.
#pragma once

#include "base/export.h"
#include "codec/wire.h"

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace openreg::aten {

/// Sends an operator whose arguments are all tensors, the first one on the
/// device, as a message, as submit() does. `alter` changes the reply. Returns
/// the new tensors. Throws as submit() does, and Malformed.
OPENREG_ATEN_API std::vector<at::Tensor> run_with_reply(
    const std::string& name,
    const std::string& overload,
    std::uint16_t key,
    const std::vector<at::Tensor>& tensors,
    const std::function<void(codec::Bytes&)>& alter);

} // namespace openreg::aten
