// SPDX-License-Identifier: BSD-3-Clause
// Memory files: pages without a path, which processes can share. They end with
// the last process that has them open or mapped.
#pragma once

#include "platform/result.h"

#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

namespace openreg::platform {

/// The identity of a file, the same in all processes.
struct FileId {
  std::uint64_t first = 0;
  std::uint64_t second = 0;

  auto operator<=>(const FileId&) const = default;
};

/// Owns an open file: a descriptor, or a HANDLE.
class File {
 public:
  using Handle = std::intptr_t;
  static constexpr Handle kNone = -1;

  File() noexcept = default;
  explicit File(Handle handle) noexcept : handle_(handle) {}
  File(File&& other) noexcept
      : handle_(std::exchange(other.handle_, kNone)), id_(other.id_) {}
  File& operator=(File&& other) noexcept {
    std::swap(handle_, other.handle_);
    std::swap(id_, other.id_);
    return *this;
  }
  ~File();

  Handle handle() const noexcept {
    return handle_;
  }
  /// Only files of create_memory_file() and open_published() have an identity.
  const FileId& id() const noexcept {
    return id_;
  }
  void set_id(const FileId& id) noexcept {
    id_ = id;
  }
  explicit operator bool() const noexcept {
    return handle_ != kNone;
  }

 private:
  Handle handle_ = kNone;
  FileId id_;
};

/// Creates a file of `size` zeros. Its pages take no memory until they are
/// used. write_at() may extend the file by up to `room` bytes. Diagnostic tools
/// show the name, which does not need to be unique.
Result create_memory_file(
    const char* name,
    std::size_t size,
    std::size_t room,
    File& file);
/// The size of a file that create_memory_file() creates: with the room, if the
/// system cannot extend files.
std::size_t created_size(std::size_t size, std::size_t room) noexcept;

Result size_of(const File& file, std::uint64_t& size);
Result
read_at(const File& file, std::uint64_t offset, void* to, std::size_t size);
Result write_at(
    const File& file,
    std::uint64_t offset,
    const void* from,
    std::size_t size);

/// Makes whole pages of a file read as zero. On Linux, they return to the
/// system; elsewhere they may stay allocated until the file ends, and the call
/// maps them.
Result release_pages(const File& file, std::uint64_t offset, std::size_t size);

/// The largest size of a file that this process may create, if there is a
/// limit. To exceed it may end the process.
std::optional<std::uint64_t> file_size_limit() noexcept;

} // namespace openreg::platform
