// SPDX-License-Identifier: BSD-3-Clause
// The SIGSEGV handler.
#include "device/fault_handler.h"

#include "base/process.h"
#include "device/device.h"
#include "memory/address_space.h"

#include <cstdint>
#include <cstdio>
#include <optional>
#include <signal.h>
#include <unistd.h>

namespace openreg {
namespace {

const AddressSpace* g_memory = nullptr;
Device& (*g_device_at)(int index) = nullptr;
struct sigaction g_previous;

/// Where on a device a fault was.
struct FaultPlace {
  int device;
  std::byte* pointer;     // the device pointer
  bool by_kernel_pointer; // or by itself
};

std::optional<FaultPlace> place_of(void* address) {
  const AddressSpace& memory = *g_memory;
  auto* pointer = static_cast<std::byte*>(address);
  if (const int device = memory.device_of(pointer); device >= 0) {
    return FaultPlace{device, pointer, false};
  }
  pointer -= memory.distance();
  if (const int device = memory.device_of(pointer); device >= 0) {
    return FaultPlace{device, pointer, true};
  }
  return std::nullopt;
}

/// Describes the memory around a device pointer. Returns whether it contains
/// data.
bool describe(char* text, std::size_t size, const FaultPlace& place) {
  std::optional<Block> block;
  if (!process::in_bad_fork()) { // there the heap may stay locked
    Device& device = g_device_at(place.device);
    block = device.memory().find(place.pointer);
    if (!block) {
      block = device.memory().trace(place.pointer);
    }
  }
  if (!block) {
    std::snprintf(text, size, "where no block is allocated");
    return false;
  }
  const auto offset = static_cast<std::size_t>(place.pointer - block->begin);
  const bool inside = offset < block->size;
  const char* state = ", which was freed";
  if (block->live) {
    state = inside ? "" : ", past its end";
  }
  std::snprintf(
      text,
      size,
      "(offset %zu in the block of %zu bytes at %p%s)",
      offset,
      block->size,
      static_cast<const void*>(block->begin),
      state);
  return block->live && inside;
}

// The faulting instruction belongs to the host or to a kernel and does not hold
// a lock of the runtime, so the ordinary lookup of the block is safe.
void explain(const void* address, const FaultPlace& place) {
  char where[160];
  const bool data = describe(where, sizeof(where), place);
  char text[400];
  int length = 0;
  if (place.by_kernel_pointer) {
    length = std::snprintf(
        text,
        sizeof(text),
        "openreg: a kernel reached %p, the kernel pointer of %p on device "
        "openreg:%d %s.\n",
        address,
        static_cast<const void*>(place.pointer),
        place.device,
        where);
  } else {
    const bool in_kernel = running_stream() != nullptr;
    const char* advice = in_kernel
        ? " In a kernel the data is at orGetKernelPointer()."
        : " Copy the data to the host first.";
    length = std::snprintf(
        text,
        sizeof(text),
        "openreg: %s dereferenced %p, a pointer to memory of device "
        "openreg:%d %s.%s\n",
        in_kernel ? "a kernel" : "the host",
        address,
        place.device,
        where,
        data ? advice : "");
  }
  if (length > 0) {
    const auto ignored =
        write(STDERR_FILENO, text, static_cast<std::size_t>(length));
    static_cast<void>(ignored);
  }
}

void pass_on(int signal, siginfo_t* info, void* context, bool faulted) {
  if ((g_previous.sa_flags & SA_SIGINFO) != 0) {
    g_previous.sa_sigaction(signal, info, context);
  } else if (
      g_previous.sa_handler != SIG_DFL && g_previous.sa_handler != SIG_IGN) {
    g_previous.sa_handler(signal);
  } else if (faulted || g_previous.sa_handler == SIG_DFL) {
    // Returning runs the instruction again, now with the default action. A
    // signal that was sent explicitly is sent again.
    sigaction(SIGSEGV, &g_previous, nullptr);
    if (!faulted) {
      raise(signal);
    }
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
/// printing. The interrupted code then ran on the signal stack.
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
  if (faulted) {
    if (const auto place = place_of(info->si_addr)) {
      explain(info->si_addr, *place);
    }
  }
  pass_on(signal, info, context, faulted);
}

} // namespace

void install_fault_handler(
    const AddressSpace& memory,
    Device& (*device_at)(int index)) {
  g_memory = &memory;
  g_device_at = device_at;
  struct sigaction action{};
  action.sa_sigaction = handle;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
  sigemptyset(&action.sa_mask);
  sigaction(SIGSEGV, &action, &g_previous);
}

} // namespace openreg
