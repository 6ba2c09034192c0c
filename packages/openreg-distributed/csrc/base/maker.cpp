// SPDX-License-Identifier: BSD-3-Clause
// Counts forks.
#include "base/maker.h"

#include <c10/util/Exception.h>

#include <pthread.h>

namespace openreg::distributed {

Maker::Maker() {
  static const int error =
      pthread_atfork(nullptr, nullptr, [] { g_forks.fetch_add(1); });
  TORCH_CHECK(
      error == 0, "occl: cannot register a fork handler: out of memory");
  forks_ = g_forks.load();
}

} // namespace openreg::distributed
