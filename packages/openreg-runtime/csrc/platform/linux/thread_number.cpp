// SPDX-License-Identifier: BSD-3-Clause
// The number of a thread in the system's tools.
#include "platform/thread.h"

#include <sys/syscall.h>
#include <unistd.h>

namespace openreg::platform {

int thread_number() noexcept {
  return static_cast<int>(syscall(SYS_gettid));
}

} // namespace openreg::platform
