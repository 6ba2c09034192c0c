// SPDX-License-Identifier: BSD-3-Clause
// Handles, and lookups of their processes in /proc.
#include "ipc/handle.h"

#include "base/error.h"
#include "base/system_thread.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <optional>
#include <sys/stat.h>
#include <unistd.h>

namespace openreg::ipc {
namespace {

static_assert(sizeof(Handle) == OPENREG_IPC_HANDLE_SIZE);

ProcessId make_process_id(pid_t number, std::uint64_t start) {
  return start << 32 | static_cast<std::uint32_t>(number);
}

pid_t number_of(ProcessId process) {
  return static_cast<pid_t>(process & 0xffffffff);
}

enum class State { kAlive, kEnded, kUnknown };

/// Looks up a process; writes its identity if it has not ended.
State look_up(pid_t number, ProcessId* process) noexcept {
  const CancellationDeferred deferred;
  char text[512];
  std::snprintf(text, sizeof(text), "/proc/%d/stat", static_cast<int>(number));
  const File file(open(text, O_RDONLY | O_CLOEXEC));
  if (!file) {
    return errno == ENOENT ? State::kEnded : State::kUnknown;
  }
  errno = 0;
  const ssize_t length = read(file.get(), text, sizeof(text) - 1);
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
  *process = make_process_id(number, start);
  return State::kAlive;
}

/// Detects accidental changes, not attacks (FNV-1a).
std::uint64_t checksum_of(const Handle& handle) {
  unsigned char bytes[offsetof(Handle, checksum)];
  std::memcpy(bytes, &handle, sizeof(bytes));
  std::uint64_t sum = 0xcbf29ce484222325;
  for (const unsigned char byte : bytes) {
    sum = (sum ^ byte) * 0x100000001b3;
  }
  return sum;
}

const char* thing(Kind kind) {
  return kind == Kind::kMemory ? "block" : "event";
}

FileId id_of(const struct stat& status) {
  return {
      static_cast<std::uint64_t>(status.st_dev),
      static_cast<std::uint64_t>(status.st_ino)};
}

} // namespace

ProcessId this_process() {
  static const ProcessId process = [] {
    ProcessId result = 0;
    if (look_up(getpid(), &result) != State::kAlive) {
      throw Failure(
          orErrorNotSupported,
          "sharing with other processes needs /proc/self/stat, which cannot "
          "be read");
    }
    return result;
  }();
  return process;
}

std::string name_of(ProcessId process) {
  return "process " + std::to_string(number_of(process));
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

File::~File() {
  if (descriptor_ >= 0) {
    const CancellationDeferred deferred;
    close(descriptor_);
  }
}

FileId id_of(int file) {
  struct stat status{};
  if (fstat(file, &status) != 0) {
    throw Failure(
        orErrorUnknown,
        std::string("a shared file cannot be read: ") + std::strerror(errno));
  }
  return id_of(status);
}

void write_handle(
    unsigned char* bytes,
    Kind kind,
    int file,
    std::uint64_t position,
    std::uint64_t id) {
  Handle handle{kind, file, this_process(), id_of(file), position, id, 0, 0};
  handle.checksum = checksum_of(handle);
  std::memcpy(bytes, &handle, sizeof(handle));
}

Handle read_handle(const unsigned char* bytes, Kind kind) {
  Handle handle{};
  std::memcpy(&handle, bytes, sizeof(handle));
  if (handle.kind != kind || handle.checksum != checksum_of(handle)) {
    throw Failure(
        orErrorInvalidValue,
        std::string("handle is not one that orIpcGet") +
            (kind == Kind::kMemory ? "Mem" : "Event") +
            "Handle of this version wrote, or its bytes were changed");
  }
  if (handle.process == this_process()) {
    throw Failure(
        orErrorNotPermitted,
        std::string("handle was created by this process, which can use the ") +
            thing(kind) + " itself");
  }
  return handle;
}

File open_file(const Handle& handle) {
  if (!alive(handle.process)) {
    throw Failure(
        orErrorInvalidValue,
        name_of(handle.process) + ", which made the handle, has ended");
  }
  char path[64];
  std::snprintf(
      path,
      sizeof(path),
      "/proc/%d/fd/%d",
      static_cast<int>(number_of(handle.process)),
      static_cast<int>(handle.descriptor));
  // Checked before opening, because the descriptor may be reused by now.
  struct stat status{};
  File file;
  bool found = stat(path, &status) == 0;
  if (found && id_of(status) == handle.file) {
    file = File(open(path, O_RDWR | O_CLOEXEC));
    found = static_cast<bool>(file);
  }
  if (!found && errno != ENOENT) {
    const int reason = errno;
    const bool ours = reason == EMFILE || reason == ENFILE || reason == ENOMEM;
    throw Failure(
        ours ? orErrorMemoryAllocation : orErrorInvalidValue,
        std::string("the ") + thing(handle.kind) + " of " +
            name_of(handle.process) +
            " cannot be opened: " + std::strerror(reason) +
            (ours ? "" : "; both processes must be of the same user"));
  }
  if (!file || id_of(file.get()) != handle.file) {
    fail_gone(handle);
  }
  return file;
}

void fail_gone(const Handle& handle) {
  throw Failure(
      orErrorInvalidValue,
      std::string("the ") + thing(handle.kind) + " that the handle names is " +
          "gone: " + name_of(handle.process) + " has " +
          (handle.kind == Kind::kMemory ? "freed" : "destroyed") + " it");
}

} // namespace openreg::ipc
