// SPDX-License-Identifier: BSD-3-Clause
// The system's number of a thread on macOS. POSIX has none: elsewhere threads
// are counted from the process number, which the main thread has on Linux.
#include "platform/thread.h"

#if defined(__APPLE__)
#include <pthread.h>
#else
#include <atomic>
#include <unistd.h>
#endif

namespace openreg::platform {

int thread_number() noexcept {
#if defined(__APPLE__)
  std::uint64_t number = 0;
  pthread_threadid_np(nullptr, &number);
  return static_cast<int>(number);
#else
  static std::atomic<int> next{static_cast<int>(getpid())};
  thread_local const int number = next.fetch_add(1);
  return number;
#endif
}

} // namespace openreg::platform
