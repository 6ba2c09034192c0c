// SPDX-License-Identifier: BSD-3-Clause
// Operators whose replies are changed before the host reads them: for tests of
// what a reply can do.
#pragma once

#include "base/export.h"
#include "codec/wire.h"

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace openreg::aten {

/// Runs an operator that takes tensors alone, the first of them the device's,
/// by a message, as submit() does; `alter` changes the reply. Returns the
/// tensors that it made. Throws as submit(), and Malformed.
OPENREG_ATEN_API std::vector<at::Tensor> run_with_reply(
    const std::string& name,
    const std::string& overload,
    std::uint16_t key,
    const std::vector<at::Tensor>& tensors,
    const std::function<void(codec::Bytes&)>& alter);

} // namespace openreg::aten
