// SPDX-License-Identifier: BSD-3-Clause
// Files by shm_open(). The name exists until all ranks have opened the file, so
// a process that is killed before leaves it behind.
#include "platform/shared_file.h"

#include "platform/posix/memory.h"

#include <cstdio>
#include <fcntl.h>
#include <random>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#if defined(__APPLE__)
#include <mach/vm_inherit.h>
#endif

namespace openreg::distributed {
namespace {

struct Name {
  explicit Name(int64_t number) {
    std::snprintf(
        text,
        sizeof(text),
        "/occl-%016llx",
        static_cast<unsigned long long>(number));
  }

  char text[32]; // the longest name on macOS
};

} // namespace

SharedFile SharedFile::create(size_t size) {
  if (!may_create_file(size)) {
    return {};
  }
  std::random_device random;
  const auto number =
      static_cast<int64_t>(uint64_t{random() >> 1} << 32 | random());
  SharedFile made(
      shm_open(Name(number).text, O_RDWR | O_CREAT | O_EXCL, 0600), number);
  if (!made ||
      ftruncate(static_cast<int>(made.handle_), static_cast<off_t>(size)) !=
          0) {
    return {};
  }
  return made;
}

SharedFile SharedFile::open(int /*process*/, int64_t number, size_t size) {
  SharedFile opened(shm_open(Name(number).text, O_RDWR, 0), -1);
  struct stat status{};
  // macOS rounds sizes up to pages.
  if (!opened || fstat(static_cast<int>(opened.handle_), &status) != 0 ||
      static_cast<size_t>(status.st_size) < size) {
    return {};
  }
  return opened;
}

#if defined(__APPLE__)
void keep_from_children(std::byte* begin, size_t size) noexcept {
  minherit(begin, size, VM_INHERIT_NONE);
}
#else
void keep_from_children(std::byte*, size_t) noexcept {}
#endif

void SharedFile::close() noexcept {
  if (*this) {
    ::close(static_cast<int>(std::exchange(handle_, kNone)));
    // Else another process created the file: a rank, or the parent.
    if (number_ >= 0 && owner_ == process_number()) {
      shm_unlink(Name(number_).text);
    }
  }
}

} // namespace openreg::distributed
