// SPDX-License-Identifier: BSD-3-Clause
// Rules of the system for the threads of a library.
#pragma once

#include "platform/result.h"

#include <array>
#include <cstdint>

namespace openreg::platform {

/// Blocks all external signals in this thread and in the threads that it
/// starts. They are for the program's threads, which may wait for them with
/// sigwait() or signalfd(). Signals for the thread's own faults stay unblocked.
class SignalsBlocked {
 public:
  SignalsBlocked() noexcept;
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;
  ~SignalsBlocked();

 private:
  std::array<std::uint64_t, 16> previous_; // the system's set of signals
};

/// Defers pthread_cancel() until the library call has returned, because a
/// cancellation would corrupt the library's state. Used around waits, sleeps
/// and file access, which are cancellation points.
class CancellationDeferred {
 public:
  CancellationDeferred() noexcept;
  CancellationDeferred(const CancellationDeferred&) = delete;
  CancellationDeferred& operator=(const CancellationDeferred&) = delete;
  ~CancellationDeferred();

 private:
  int previous_;
};

/// A pointer per thread. When a thread ends, `callback` gets its pointer, after
/// the destructors of thread_local variables. The main thread does not end when
/// the process exits.
class ThreadEnd {
 public:
  static Result make(void (*callback)(void* value), ThreadEnd& end);
  /// Sets the pointer of this thread.
  Result set(void* value) const;

 private:
  std::uintptr_t key_ = 0;
};

/// The system's number of this thread.
int thread_number() noexcept;
/// Never returns.
[[noreturn]] void sleep_forever() noexcept;

/// Runs `body`. If the system ends the thread in it by unwinding the stack, the
/// thread sleeps there until the process ends. Exceptions pass.
void run_or_sleep(void (*body)(void* argument), void* argument);

} // namespace openreg::platform
