// SPDX-License-Identifier: BSD-3-Clause
// Which dtypes are widened.
#include "facts/wider_dtypes.h"

namespace openreg::aten {
namespace {

bool g_enabled = false;
bool g_slow = false;

} // namespace

void use_wider_dtypes() {
  g_enabled = true;
}

bool uses_wider_dtypes() {
  return g_enabled;
}

void widen_slow_dtypes(bool enabled) {
  g_slow = enabled;
}

uint64_t slow_dtypes(const OperatorFacts& facts) {
  return g_slow ? facts.slow_dtypes : 0;
}

} // namespace openreg::aten
