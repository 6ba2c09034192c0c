// SPDX-License-Identifier: BSD-3-Clause
// Fork and exit handlers.
//
// Nothing is destroyed at exit: other libraries free device memory from their
// own exit handlers. Workers stop taking commands, and workers that run one get
// a moment to end it, because the code of a kernel may be unloaded next. Queued
// commands are dropped, so that no exit handler waits for them.
#include "base/process.h"

#include "platform/process.h"

#include <atomic>

namespace openreg::process {
namespace {

std::atomic<bool> g_in_use{false};
void (*g_on_exit)() = nullptr;

void on_exit() {
  if (!g_bad_fork) { // a forked child has no workers
    g_exiting = true;
    g_on_exit();
  }
}

} // namespace

platform::Result mark_in_use(void (*callback)()) {
  static const platform::Result registered = [callback] {
    const auto result =
        platform::call_in_children([] { g_bad_fork.store(true); });
    if (result) {
      g_on_exit = callback;
      platform::call_at_exit(on_exit);
      g_in_use.store(true);
    }
    return result;
  }();
  return registered;
}

bool in_use() noexcept {
  return g_in_use.load(std::memory_order_relaxed);
}

} // namespace openreg::process
