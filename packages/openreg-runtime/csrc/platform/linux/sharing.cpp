// SPDX-License-Identifier: BSD-3-Clause
// Files opened through /proc/<pid>/fd, without a service between the processes,
// and claims by file locks.
#include "platform/sharing.h"

#include "platform/posix/descriptor.h"

#include <cerrno>
#include <cstdio>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace openreg::platform {
namespace {

FileId id_of(const struct stat& status) {
  return {
      static_cast<std::uint64_t>(status.st_dev),
      static_cast<std::uint64_t>(status.st_ino)};
}

/// A lock of a given type on the room at `position`. It belongs to the open
/// file, not to the process or a thread, and ends with it.
struct flock lock_on(std::uint64_t position, short type) {
  struct flock lock{};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  lock.l_start = static_cast<off_t>(position);
  lock.l_len = sizeof(ClaimRoom);
  return lock;
}

} // namespace

Result publish(const File& file, std::int32_t& number) {
  number = descriptor_of(file);
  return {};
}

void withdraw(const File&) noexcept {}

Result open_published(
    ProcessId owner,
    std::int32_t number,
    const FileId& id,
    File& file) {
  char path[64];
  std::snprintf(path, sizeof(path), "/proc/%u/fd/%d", number_of(owner), number);
  // Checked before opening, because the descriptor may be reused by now.
  struct stat status{};
  if (stat(path, &status) != 0) {
    return errno == ENOENT ? Result() : Result::last();
  }
  if (id_of(status) != id) {
    return {};
  }
  File opened(open(path, O_RDWR | O_CLOEXEC));
  if (!opened) {
    return errno == ENOENT ? Result() : Result::last();
  }
  if (fstat(descriptor_of(opened), &status) != 0) {
    return Result::last();
  }
  if (id_of(status) == id) {
    opened.set_id(id);
    file = std::move(opened);
  }
  return {};
}

Result begin_claim(const File& file, std::uint64_t position, int& claim) {
  claim = 0; // the locks of an open file are one
  struct flock lock = lock_on(position, F_RDLCK);
  return fcntl(descriptor_of(file), F_OFD_SETLK, &lock) == 0 ? Result()
                                                             : Result::last();
}

void end_claim(const File& file, std::uint64_t position, int) noexcept {
  struct flock lock = lock_on(position, F_UNLCK);
  fcntl(descriptor_of(file), F_OFD_SETLK, &lock);
}

bool is_claimed(const File& file, std::uint64_t position) noexcept {
  struct flock lock = lock_on(position, F_WRLCK); // which any lock forbids
  return fcntl(descriptor_of(file), F_OFD_GETLK, &lock) == 0 &&
      lock.l_type != F_UNLCK;
}

Result forbid_inspection() {
  return prctl(PR_SET_DUMPABLE, 0) == 0 ? Result() : Result::last();
}

} // namespace openreg::platform
