// SPDX-License-Identifier: BSD-3-Clause
// How many calls went through messages, and which could not.
#pragma once

#include "export.h"

#include <ATen/core/operator_name.h>

#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

namespace openreg::aten {

/// Counts a call that has, or has not, gone through a message.
void count_message(const c10::OperatorName& name, bool sent);

/// Operator, calls by messages, and calls without, whose arguments or results
/// have no encoding.
OPENREG_ATEN_API
std::vector<std::tuple<std::string, std::uint64_t, std::uint64_t>>
message_counts();

} // namespace openreg::aten
