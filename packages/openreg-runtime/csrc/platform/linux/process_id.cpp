// SPDX-License-Identifier: BSD-3-Clause
// Identities of processes, looked up in /proc. The upper half of an identity is
// the start time.
#include "platform/posix/descriptor.h"
#include "platform/process.h"
#include "platform/thread.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <unistd.h>

namespace openreg::platform {
namespace {

enum class State { kAlive, kEnded, kUnknown };

/// Looks up a process; writes its identity if it has not ended.
State look_up(std::uint32_t number, ProcessId* process) noexcept {
  const CancellationDeferred deferred;
  char text[512];
  std::snprintf(text, sizeof(text), "/proc/%u/stat", number);
  const File file(open(text, O_RDONLY | O_CLOEXEC));
  if (!file) {
    return errno == ENOENT ? State::kEnded : State::kUnknown;
  }
  errno = 0;
  const ssize_t length = read(descriptor_of(file), text, sizeof(text) - 1);
  if (length <= 0) {
    return errno == ESRCH ? State::kEnded : State::kUnknown;
  }
  text[length] = '\0';
  // The name, in brackets, can contain any character; the last bracket ends it.
  const char* rest = std::strrchr(text, ')');
  char state = '\0';
  long threads = 0;
  unsigned long long start = 0; // clock ticks after the machine's start
  if (rest == nullptr ||
      std::sscanf(
          rest + 1,
          " %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d "
          "%ld %*d %llu",
          &state,
          &threads,
          &start) != 3) {
    return State::kUnknown;
  }
  // A process whose first thread has ended looks like a zombie, except for its
  // other threads.
  if (state == 'X' || (state == 'Z' && threads <= 1)) {
    return State::kEnded;
  }
  *process = static_cast<ProcessId>(start) << 32 | number;
  return State::kAlive;
}

} // namespace

Result this_process(ProcessId& process) {
  errno = 0;
  if (look_up(static_cast<std::uint32_t>(getpid()), &process) ==
      State::kAlive) {
    return {};
  }
  return errno != 0 ? Result::last() : Result(EIO);
}

bool alive(ProcessId process) noexcept {
  ProcessId found = 0;
  switch (look_up(number_of(process), &found)) {
    case State::kAlive:
      return found == process;
    case State::kEnded:
      return false;
    case State::kUnknown:
      return true; // on an error here, assume that the process is alive
  }
  return true;
}

} // namespace openreg::platform
