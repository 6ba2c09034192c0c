// SPDX-License-Identifier: BSD-3-Clause
// Handles that processes exchange: a process, and one of its files.
//
// All shared memory lies in memory files. Another process of the same user
// opens them through /proc/<pid>/fd, without a service between them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

namespace openreg::ipc {

/// Identifies a process of this machine by its number and start time, because
/// process numbers are reused. Fits into one atomic word; 0 is none.
using ProcessId = std::uint64_t;

ProcessId this_process();
/// "process 1234"
std::string name_of(ProcessId process);
/// False once the process has ended, even as a zombie. A process after exec()
/// still counts as alive.
bool alive(ProcessId process) noexcept;

/// Owns a file descriptor.
class File {
 public:
  explicit File(int descriptor = -1) noexcept : descriptor_(descriptor) {}
  File(File&& other) noexcept
      : descriptor_(std::exchange(other.descriptor_, -1)) {}
  File& operator=(File&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }
  ~File();

  int get() const noexcept {
    return descriptor_;
  }
  explicit operator bool() const noexcept {
    return descriptor_ >= 0;
  }

 private:
  int descriptor_;
};

/// The identity of a file, independent of its descriptors.
struct FileId {
  std::uint64_t device; // of the file system
  std::uint64_t inode;

  auto operator<=>(const FileId&) const = default;
};
FileId id_of(int file);

enum class Kind : std::uint32_t { kMemory = 0x316d726f, kEvent = 0x3165726f };

/// The bytes of a handle.
struct Handle {
  Kind kind;               // and the version of this layout
  std::int32_t descriptor; // in the process that made the handle
  ProcessId process;
  FileId file;
  std::uint64_t position; // in the file, for memory handles
  std::uint64_t id;
  std::uint64_t unused;
  std::uint64_t checksum;
};

/// Writes the 64 bytes of a handle.
void write_handle(
    unsigned char* bytes,
    Kind kind,
    int file,
    std::uint64_t position = 0,
    std::uint64_t id = 0);
/// Throws orErrorInvalidValue for bytes that write_handle() has not written,
/// and orErrorNotPermitted for a handle of this process.
Handle read_handle(const unsigned char* bytes, Kind kind);
/// Opens the file of another process's handle. Throws orErrorInvalidValue if
/// the file is gone, and orErrorMemoryAllocation.
File open_file(const Handle& handle);

/// Throws orErrorInvalidValue: the object of the handle no longer exists.
[[noreturn]] void fail_gone(const Handle& handle);

} // namespace openreg::ipc
