// SPDX-License-Identifier: BSD-3-Clause
// The SIGSEGV handler.
#include "fault_handler.h"

#include "process.h"
#include "runtime.h"

#include <cstdint>
#include <cstdio>
#include <optional>
#include <signal.h>
#include <unistd.h>

namespace openreg {
namespace {

Runtime* g_runtime = nullptr;
struct sigaction g_previous;

// The process is about to end at a known instruction of the host that holds no
// lock of ours, so the ordinary look-up of the block is safe here.
void explain(const void* address, int device) {
  std::optional<Device::Block> block;
  if (!process::in_bad_fork()) { // there the heap may be locked for good
    block = g_runtime->device(device).find(address);
  }
  char text[320];
  int length = 0;
  if (block) {
    length = std::snprintf(
        text,
        sizeof(text),
        "openreg: the host dereferenced %p, a pointer to memory of device "
        "openreg:%d (offset %zu in the block of %zu bytes at %p). Copy the "
        "data to the host first.\n",
        address,
        device,
        static_cast<std::size_t>(
            static_cast<const std::byte*>(address) - block->begin),
        block->size,
        static_cast<const void*>(block->begin));
  } else {
    length = std::snprintf(
        text,
        sizeof(text),
        "openreg: the host dereferenced %p, an address of device openreg:%d "
        "where no block is allocated.\n",
        address,
        device);
  }
  if (length > 0) {
    const auto ignored =
        write(STDERR_FILENO, text, static_cast<std::size_t>(length));
    static_cast<void>(ignored);
  }
}

void pass_on(int signal, siginfo_t* info, void* context) {
  if ((g_previous.sa_flags & SA_SIGINFO) != 0) {
    g_previous.sa_sigaction(signal, info, context);
  } else if (
      g_previous.sa_handler != SIG_DFL && g_previous.sa_handler != SIG_IGN) {
    g_previous.sa_handler(signal);
  } else {
    // Returning runs the instruction again, now with the default action.
    sigaction(SIGSEGV, &g_previous, nullptr);
  }
}

std::uintptr_t stack_pointer(const ucontext_t& interrupted) {
#if defined(__x86_64__)
  return static_cast<std::uintptr_t>(interrupted.uc_mcontext.gregs[REG_RSP]);
#elif defined(__aarch64__)
  return static_cast<std::uintptr_t>(interrupted.uc_mcontext.sp);
#else
  return 0;
#endif
}

/// Whether another handler sent the signal, as Python's faulthandler does after
/// it has printed: the code that was interrupted ran on the signal stack.
bool sent_by_handler(const siginfo_t* info, const void* context) {
  const auto& interrupted = *static_cast<const ucontext_t*>(context);
  const auto begin =
      reinterpret_cast<std::uintptr_t>(interrupted.uc_stack.ss_sp);
  return info->si_code == SI_TKILL && begin != 0 &&
      stack_pointer(interrupted) - begin < interrupted.uc_stack.ss_size;
}

void handle(int signal, siginfo_t* info, void* context) {
  if (sent_by_handler(info, context)) {
    return; // the faulting instruction runs again, now with our handler first
  }
  const bool faulted = info->si_code > 0; // a sent signal has no address
  const int device =
      faulted ? g_runtime->memory().device_of(info->si_addr) : -1;
  if (device >= 0) {
    explain(info->si_addr, device);
  }
  pass_on(signal, info, context);
}

} // namespace

void install_fault_handler(Runtime& runtime) {
  g_runtime = &runtime;
  struct sigaction action{};
  action.sa_sigaction = handle;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
  sigemptyset(&action.sa_mask);
  sigaction(SIGSEGV, &action, &g_previous);
}

} // namespace openreg
