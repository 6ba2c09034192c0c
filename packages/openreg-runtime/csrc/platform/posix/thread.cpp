// SPDX-License-Identifier: BSD-3-Clause
// Signals, cancellation and ends of threads.
#include "platform/thread.h"

#include <cstring>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>
#if defined(__GLIBCXX__)
#include <cxxabi.h>
#endif

namespace openreg::platform {

SignalsBlocked::SignalsBlocked() noexcept {
  sigset_t blocked;
  sigset_t previous;
  sigfillset(&blocked);
  for (const int own :
       {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS}) {
    sigdelset(&blocked, own);
  }
  pthread_sigmask(SIG_SETMASK, &blocked, &previous);
  static_assert(sizeof(previous) <= sizeof(previous_));
  std::memcpy(previous_.data(), &previous, sizeof(previous));
}

SignalsBlocked::~SignalsBlocked() {
  sigset_t previous;
  std::memcpy(&previous, previous_.data(), sizeof(previous));
  pthread_sigmask(SIG_SETMASK, &previous, nullptr);
}

CancellationDeferred::CancellationDeferred() noexcept {
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &previous_);
}

CancellationDeferred::~CancellationDeferred() {
  pthread_setcancelstate(previous_, nullptr);
}

Result ThreadEnd::make(void (*callback)(void* value), ThreadEnd& end) {
  pthread_key_t key{};
  const int error = pthread_key_create(&key, callback);
  end.key_ = static_cast<std::uintptr_t>(key);
  return Result(error);
}

Result ThreadEnd::set(void* value) const {
  return Result(pthread_setspecific(static_cast<pthread_key_t>(key_), value));
}

void sleep_forever() noexcept {
  for (;;) {
    pause();
  }
}

void run_or_sleep(void (*body)(void* argument), void* argument) {
#if defined(__GLIBCXX__)
  try {
    body(argument);
  } catch (const abi::__forced_unwind&) {
    sleep_forever();
  }
#else
  body(argument); // the end of a thread does not unwind its stack
#endif
}

} // namespace openreg::platform
