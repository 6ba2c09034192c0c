// SPDX-License-Identifier: BSD-3-Clause
// Memory files of Linux, which return single pages to the system.
#include "platform/file.h"
#include "platform/posix/descriptor.h"

#include <cerrno>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace openreg::platform {

Result create_memory_file(
    const char* name,
    std::size_t size,
    std::size_t /*room*/, // write_at() extends the file
    File& file) {
  File made(memfd_create(name, MFD_CLOEXEC));
  struct stat status{};
  if (!made || ftruncate(descriptor_of(made), static_cast<off_t>(size)) != 0 ||
      fstat(descriptor_of(made), &status) != 0) {
    return Result::last();
  }
  const FileId id{
      static_cast<std::uint64_t>(status.st_dev),
      static_cast<std::uint64_t>(status.st_ino)};
  made.set_id(id);
  file = std::move(made);
  return {};
}

std::size_t created_size(std::size_t size, std::size_t /*room*/) noexcept {
  return size;
}

Result
read_at(const File& file, std::uint64_t offset, void* to, std::size_t size) {
  const ssize_t length =
      pread(descriptor_of(file), to, size, static_cast<off_t>(offset));
  if (length == static_cast<ssize_t>(size)) {
    return {};
  }
  return length < 0 ? Result::last() : Result(ENODATA);
}

Result write_at(
    const File& file,
    std::uint64_t offset,
    const void* from,
    std::size_t size) {
  const ssize_t length =
      pwrite(descriptor_of(file), from, size, static_cast<off_t>(offset));
  if (length == static_cast<ssize_t>(size)) {
    return {};
  }
  return length < 0 ? Result::last() : Result(ENOSPC);
}

Result release_pages(const File& file, std::uint64_t offset, std::size_t size) {
  return fallocate(
             descriptor_of(file),
             FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
             static_cast<off_t>(offset),
             static_cast<off_t>(size)) == 0
      ? Result()
      : Result::last();
}

} // namespace openreg::platform
