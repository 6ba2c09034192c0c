// SPDX-License-Identifier: BSD-3-Clause
// Files opened through /proc/<pid>/fd.
#include "platform/shared_file.h"

#include "platform/posix/memory.h"

#include <cstdio>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace openreg::distributed {

SharedFile SharedFile::create(size_t size) {
  if (!may_create_file(size)) {
    return {};
  }
  const int file = memfd_create("occl", MFD_CLOEXEC);
  SharedFile made(file, file);
  if (!made || ftruncate(file, static_cast<off_t>(size)) != 0) {
    return {};
  }
  return made;
}

SharedFile SharedFile::open(int process, int64_t number, size_t size) {
  char path[64];
  std::snprintf(
      path,
      sizeof(path),
      "/proc/%d/fd/%lld",
      process,
      static_cast<long long>(number));
  SharedFile opened(::open(path, O_RDWR | O_CLOEXEC), number);
  struct stat status{};
  if (!opened || fstat(static_cast<int>(opened.handle_), &status) != 0 ||
      static_cast<size_t>(status.st_size) != size) {
    return {};
  }
  return opened;
}

void keep_from_children(std::byte* begin, size_t size) noexcept {
  madvise(begin, size, MADV_DONTFORK);
}

void SharedFile::close() noexcept {
  if (*this) {
    ::close(static_cast<int>(std::exchange(handle_, kNone)));
  }
}

} // namespace openreg::distributed
