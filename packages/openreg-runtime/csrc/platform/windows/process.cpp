// SPDX-License-Identifier: BSD-3-Clause
// Processes, identified by their numbers and creation times.
#include "platform/process.h"

#include "platform/windows/system.h"

#include <process.h>

namespace openreg::platform {
namespace {

/// Returns 0 if the times cannot be read.
ProcessId identify(HANDLE process, std::uint32_t number) noexcept {
  FILETIME created{};
  FILETIME exited{};
  FILETIME in_kernel{};
  FILETIME in_program{};
  if (GetProcessTimes(process, &created, &exited, &in_kernel, &in_program) ==
      0) {
    return 0;
  }
  const std::uint64_t ticks = std::uint64_t{created.dwHighDateTime} << 32 |
      created.dwLowDateTime; // of 100 ns
  constexpr std::uint64_t kTicksPerMillisecond = 10'000;
  return ticks / kTicksPerMillisecond << 32 | number;
}

} // namespace

int process_number() noexcept {
  return static_cast<int>(GetCurrentProcessId());
}

Result this_process(ProcessId& process) {
  static const ProcessId self =
      identify(GetCurrentProcess(), GetCurrentProcessId());
  process = self;
  return self != 0 ? Result() : Result(ERROR_NOT_SUPPORTED);
}

bool alive(ProcessId process) noexcept {
  const HandleScope found(OpenProcess(
      PROCESS_QUERY_LIMITED_INFORMATION | SYNCHRONIZE,
      FALSE,
      number_of(process)));
  if (found.get() == nullptr) {
    return GetLastError() != ERROR_INVALID_PARAMETER; // it has ended
  }
  // A process that has ended exists while a handle of it is open.
  const bool ended = WaitForSingleObject(found.get(), 0) == WAIT_OBJECT_0;
  const ProcessId identity = identify(found.get(), number_of(process));
  return !ended && (identity == 0 || identity == process);
}

Result call_in_children(void (*)()) {
  return {}; // nothing is forked
}

void call_at_exit(void (*callback)()) {
  // std::atexit() in a library runs when the other threads have been ended.
  _crt_atexit(callback);
  HMODULE module = nullptr; // stays loaded, for the callback
  GetModuleHandleExW(
      GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS | GET_MODULE_HANDLE_EX_FLAG_PIN,
      reinterpret_cast<LPCWSTR>(&call_at_exit),
      &module);
}

} // namespace openreg::platform
