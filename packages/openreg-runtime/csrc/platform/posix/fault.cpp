// SPDX-License-Identifier: BSD-3-Clause
// The handler of the signals of faults.
#include "platform/fault.h"

#include "platform/posix/fault_signals.h"

#include <array>
#include <cstdint>
#include <signal.h>
#include <unistd.h>
#if defined(__APPLE__)
#include <sys/ucontext.h>
#else
#include <ucontext.h>
#endif

namespace openreg::platform {
namespace {

void (*g_explain)(void* address) = nullptr;
std::array<struct sigaction, 2> g_previous; // in the order of fault_signals()

struct sigaction& previous_of(int signal) {
  return g_previous[signal == fault_signals().front() ? 0 : 1];
}

void pass_on(int signal, siginfo_t* info, void* context, bool faulted) {
  const struct sigaction& previous = previous_of(signal);
  if ((previous.sa_flags & SA_SIGINFO) != 0) {
    previous.sa_sigaction(signal, info, context);
  } else if (previous.sa_handler != SIG_DFL && previous.sa_handler != SIG_IGN) {
    previous.sa_handler(signal);
  } else if (faulted || previous.sa_handler == SIG_DFL) {
    // Returning runs the instruction again, now with the default action. A
    // signal that was sent explicitly is sent again.
    sigaction(signal, &previous, nullptr);
    if (!faulted) {
      raise(signal);
    }
  }
}

std::uintptr_t stack_pointer(const ucontext_t& interrupted) {
#if defined(__APPLE__) && defined(__x86_64__)
  return static_cast<std::uintptr_t>(interrupted.uc_mcontext->__ss.__rsp);
#elif defined(__APPLE__) && defined(__aarch64__)
  return static_cast<std::uintptr_t>(interrupted.uc_mcontext->__ss.__sp);
#elif defined(__linux__) && defined(__x86_64__)
  return static_cast<std::uintptr_t>(interrupted.uc_mcontext.gregs[REG_RSP]);
#elif defined(__linux__) && defined(__aarch64__)
  return static_cast<std::uintptr_t>(interrupted.uc_mcontext.sp);
#else
  static_cast<void>(interrupted);
  return 0;
#endif
}

/// Whether raise() sent the signal.
bool was_raised(const siginfo_t* info) {
#if defined(SI_TKILL)
  return info->si_code == SI_TKILL;
#else
  return info->si_code == SI_USER && info->si_pid == getpid();
#endif
}

/// A sent signal has no address.
bool was_sent(const siginfo_t* info) {
  return info->si_code <= 0 || info->si_code == SI_USER ||
      info->si_code == SI_QUEUE;
}

/// Whether another handler sent the signal, as Python's faulthandler does after
/// printing. The interrupted code then ran on the signal stack.
bool sent_by_handler(const siginfo_t* info, const void* context) {
  const auto& interrupted = *static_cast<const ucontext_t*>(context);
  const auto begin =
      reinterpret_cast<std::uintptr_t>(interrupted.uc_stack.ss_sp);
  return was_raised(info) && begin != 0 &&
      stack_pointer(interrupted) - begin < interrupted.uc_stack.ss_size;
}

void handle(int signal, siginfo_t* info, void* context) {
  if (sent_by_handler(info, context)) {
    return; // the faulting instruction runs again, now with our handler first
  }
  const bool faulted = !was_sent(info);
  if (faulted) {
    g_explain(info->si_addr);
  }
  pass_on(signal, info, context, faulted);
}

} // namespace

void install_fault_handler(void (*explain)(void* address)) {
  g_explain = explain;
  for (const int signal : fault_signals()) {
    struct sigaction action{};
    action.sa_sigaction = handle;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
    sigemptyset(&action.sa_mask);
    sigaction(signal, &action, &previous_of(signal));
  }
}

void write_error(const char* text, std::size_t size) noexcept {
  const auto ignored = write(STDERR_FILENO, text, size);
  static_cast<void>(ignored);
}

} // namespace openreg::platform
