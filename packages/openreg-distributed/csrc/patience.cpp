// SPDX-License-Identifier: BSD-3-Clause
// Leaves the core to its other thread for a moment.
#include "patience.h"

namespace openreg::distributed {

void Patience::relax() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("isb");
#endif
}

} // namespace openreg::distributed
