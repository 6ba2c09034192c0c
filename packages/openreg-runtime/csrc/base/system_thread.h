// SPDX-License-Identifier: BSD-3-Clause
// Signal and cancellation rules for a library that has threads.
#pragma once

#include <pthread.h>
#include <signal.h>
#include <thread>
#include <utility>

namespace openreg {

/// Blocks all external signals in this thread and in the threads that it
/// starts. They are for the program's threads, which may wait for them with
/// sigwait() or signalfd(). Signals for the thread's own faults stay unblocked.
class SignalsBlocked {
 public:
  SignalsBlocked() noexcept {
    sigset_t blocked;
    sigfillset(&blocked);
    for (const int own :
         {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS}) {
      sigdelset(&blocked, own);
    }
    pthread_sigmask(SIG_SETMASK, &blocked, &previous_);
  }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;
  ~SignalsBlocked() {
    pthread_sigmask(SIG_SETMASK, &previous_, nullptr);
  }

 private:
  sigset_t previous_;
};

/// Runs `body` on a new library thread. Throws std::system_error.
template <typename Body>
void start_thread(Body&& body) {
  const SignalsBlocked blocked;
  std::thread(std::forward<Body>(body)).detach();
}

/// Defers pthread_cancel() until the library call has returned, because a
/// cancellation would corrupt the library's state. Used around waits, sleeps
/// and file access, which are cancellation points.
class CancellationDeferred {
 public:
  CancellationDeferred() noexcept {
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &previous_);
  }
  CancellationDeferred(const CancellationDeferred&) = delete;
  CancellationDeferred& operator=(const CancellationDeferred&) = delete;
  ~CancellationDeferred() {
    pthread_setcancelstate(previous_, nullptr);
  }

 private:
  int previous_ = PTHREAD_CANCEL_ENABLE;
};

} // namespace openreg
