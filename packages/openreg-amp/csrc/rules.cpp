// SPDX-License-Identifier: BSD-3-Clause
// The table of rules, generated from the lists that register them.
#include "rules.h"

#include "torch_version.h"

#include <ATen/autocast_mode.h>

namespace openreg::amp {
namespace {

#define OPENREG_ROW1(op, policy) {"aten::" #op, #policy},
#define OPENREG_ROW2(op, overload, policy) \
  {"aten::" #op "." #overload, #policy},
#define OPENREG_RULE(...)                                          \
  C10_CONCATENATE(OPENREG_ROW, _KERNEL_OVERLOAD_NARG(__VA_ARGS__)) \
  (__VA_ARGS__)
#define OPENREG_APPEND_DTYPE_RULE(                   \
    function, name, signature, redispatched, policy) \
  {"aten::" name, #policy},
#define OPENREG_BANNED(op) {"aten::" #op, "banned"},

constexpr Rule kRules[] = {
#include "rules.def"
};

} // namespace

std::span<const Rule> rules() {
  return kRules;
}

} // namespace openreg::amp
