// SPDX-License-Identifier: BSD-3-Clause
// The number by which the system's tools name a thread.
#include "platform/thread.h"

#include <sys/syscall.h>
#include <unistd.h>

namespace openreg::platform {

int thread_number() noexcept {
  return static_cast<int>(syscall(SYS_gettid));
}

} // namespace openreg::platform
