// SPDX-License-Identifier: BSD-3-Clause
// Ends of threads, by the callbacks of fiber-local storage. Windows has neither
// signals nor cancellation.
//
// A callback runs before the destructors of thread_local variables. A pointer
// that one of them sets is not freed.
#include "platform/thread.h"

#include "platform/windows/system.h"

namespace openreg::platform {

SignalsBlocked::SignalsBlocked() noexcept {
  previous_.fill(0);
}

SignalsBlocked::~SignalsBlocked() = default;

CancellationDeferred::CancellationDeferred() noexcept {
  previous_ = 0;
}

CancellationDeferred::~CancellationDeferred() = default;

Result ThreadEnd::make(void (*callback)(void* value), ThreadEnd& end) {
  // On x86-64 and ARM64 all functions have one calling convention.
  const DWORD key =
      FlsAlloc(reinterpret_cast<PFLS_CALLBACK_FUNCTION>(callback));
  end.key_ = key;
  return key != FLS_OUT_OF_INDEXES ? Result() : Result::last();
}

Result ThreadEnd::set(void* value) const {
  return FlsSetValue(static_cast<DWORD>(key_), value) != 0 ? Result()
                                                           : Result::last();
}

int thread_number() noexcept {
  return static_cast<int>(GetCurrentThreadId());
}

void sleep_forever() noexcept {
  for (;;) {
    Sleep(INFINITE);
  }
}

void run_or_sleep(void (*body)(void* argument), void* argument) {
  body(argument); // the end of a thread does not unwind its stack
}

} // namespace openreg::platform
