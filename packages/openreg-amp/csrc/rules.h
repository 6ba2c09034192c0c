// SPDX-License-Identifier: BSD-3-Clause
// The autocast rules as a table for people and tests.
#pragma once

#include <span>

namespace openreg::amp {

struct Rule {
  const char* op;     // qualified: "aten::mm", "aten::pow.Scalar"
  const char* policy; // an at::autocast::CastPolicy, or "banned"
};

/// Every rule, in the order of rules.def.
std::span<const Rule> rules();

} // namespace openreg::amp
