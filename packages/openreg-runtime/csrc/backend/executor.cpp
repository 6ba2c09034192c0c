// SPDX-License-Identifier: BSD-3-Clause
// The one executor of the process.
#include "backend/executor.h"

#include "base/error.h"

#include <atomic>
#include <utility>

namespace openreg {
namespace {

// Never deleted: workers outlive main().
std::atomic<const Executor*> g_executor{nullptr};

} // namespace

const Executor* find_executor() noexcept {
  return g_executor.load(std::memory_order_acquire);
}

const Executor& executor() {
  const Executor* found = find_executor();
  if (found == nullptr) {
    throw Failure(
        orErrorNotSupported,
        "no message executor is set: call orSetExecutor() first");
  }
  return *found;
}

void set_executor(Executor executor) {
  auto* made = new Executor(std::move(executor));
  const Executor* known = nullptr;
  if (g_executor.compare_exchange_strong(known, made)) {
    return;
  }
  const bool same = known->execute == made->execute;
  delete made;
  if (!same) {
    throw Failure(
        orErrorInvalidValue,
        "another message executor is already set: a process can have only one");
  }
}

} // namespace openreg
