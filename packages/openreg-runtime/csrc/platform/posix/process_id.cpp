// SPDX-License-Identifier: BSD-3-Clause
// Identities of processes by locked files, because POSIX has no start times and
// counts a zombie as a process. The upper half of an identity is random.
#include "platform/posix/own_folder.h"
#include "platform/process.h"
#include "platform/thread.h"

#include <cerrno>
#include <fcntl.h>
#include <mutex>
#include <pthread.h>
#include <random>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace openreg::platform {
namespace {

struct Self {
  std::mutex mutex;
  ProcessId process = 0; // 0: not made yet
  int file = -1;         // locked; open until the process ends
};

Self& self() {
  static auto* value = new Self;
  return *value;
}

/// A child has another identity.
void forget_in_child() {
  if (self().file >= 0) {
    close(self().file); // the lock belongs to the parent, too
  }
  self().process = 0;
  self().file = -1;
  self().mutex.unlock();
}

/// Creates and locks the file of an identity. Another process may remove it
/// before it is locked.
Result try_identity(ProcessId process, int& file, bool& removed) {
  const std::string path = file_of(process);
  file = open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (file < 0) {
    return Result::last();
  }
  struct stat status{};
  if (flock(file, LOCK_EX) != 0 || fstat(file, &status) != 0) {
    const Result failure = Result::last();
    close(file);
    return failure;
  }
  removed = status.st_nlink == 0;
  return {};
}

} // namespace

Result this_process(ProcessId& process) {
  const CancellationDeferred deferred;
  static const int registered = pthread_atfork(
      [] { self().mutex.lock(); },
      [] { self().mutex.unlock(); },
      forget_in_child);
  if (registered != 0) {
    return Result(registered);
  }
  Self& own = self();
  const std::lock_guard lock(own.mutex);
  if (own.process == 0) {
    if (Result made = make_own_folder(); !made) {
      return made;
    }
    clean_own_folder();
    std::random_device random;
    for (bool removed = true; removed;) {
      const ProcessId candidate =
          std::uint64_t{random()} << 32 | static_cast<std::uint32_t>(getpid());
      int file = -1;
      if (Result made = try_identity(candidate, file, removed); !made) {
        return made;
      }
      if (removed) {
        close(file);
      } else {
        own.file = file;
        own.process = candidate;
      }
    }
  }
  process = own.process;
  return {};
}

bool alive(ProcessId process) noexcept {
  const CancellationDeferred deferred;
  {
    const std::lock_guard lock(self().mutex);
    if (process == self().process) {
      return true;
    }
  }
  const int file = open(file_of(process).c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) {
    return errno != ENOENT; // on another error, assume that it is alive
  }
  const bool locked = is_locked(file);
  close(file);
  return locked;
}

} // namespace openreg::platform
