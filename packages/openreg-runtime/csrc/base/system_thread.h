// SPDX-License-Identifier: BSD-3-Clause
// What the threads of a program expect of a library that has threads too.
#pragma once

#include <pthread.h>
#include <signal.h>
#include <thread>
#include <utility>

namespace openreg {

/// As long as it lives, this thread, and the threads that it starts, take no
/// signal from outside: those are for the threads of the program, which may
/// wait for them with sigwait() or signalfd(). Signals of the thread's own
/// faults stay.
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

/// Runs `body` on a thread of the library. Throws std::system_error.
template <typename Body>
void start_thread(Body&& body) {
  const SignalsBlocked blocked;
  std::thread(std::forward<Body>(body)).detach();
}

/// As long as it lives, pthread_cancel() of this thread has no effect: it takes
/// effect after the call of the library, whose state it would break. For what
/// waits, sleeps or uses files: those are the points where a thread can end.
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
