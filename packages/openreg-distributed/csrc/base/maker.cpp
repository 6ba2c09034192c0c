// SPDX-License-Identifier: BSD-3-Clause
// Counts forks.
#include "base/maker.h"

#include "platform/process.h"

#include <c10/util/Exception.h>

namespace openreg::distributed {

Maker::Maker() {
  static const bool registered = call_in_children([] { g_forks.fetch_add(1); });
  TORCH_CHECK(
      registered, "occl: cannot register a fork handler: out of memory");
  forks_ = g_forks.load();
}

} // namespace openreg::distributed
