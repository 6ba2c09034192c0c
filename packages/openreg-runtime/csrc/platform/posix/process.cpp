// SPDX-License-Identifier: BSD-3-Clause
// The number of this process, and its children.
#include "platform/process.h"

#include <cstdlib>
#include <pthread.h>
#include <unistd.h>

namespace openreg::platform {

int process_number() noexcept {
  return static_cast<int>(getpid());
}

Result call_in_children(void (*callback)()) {
  return Result(pthread_atfork(nullptr, nullptr, callback));
}

void call_at_exit(void (*callback)()) {
  std::atexit(callback);
}

} // namespace openreg::platform
