// SPDX-License-Identifier: BSD-3-Clause
// What processes tell each other: who they are, and which of their files to
// open.
//
// Everything that is shared lies in a memory file. Another process of the same
// user opens it through /proc/<pid>/fd, and no service between them is needed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

namespace openreg::ipc {

/// A process of this machine: its number, and when it started, which tells it
/// from a later one with the same number. Fits in one atomic word; 0 is none.
using ProcessId = std::uint64_t;

ProcessId this_process();
/// "process 1234"
std::string name_of(ProcessId process);
/// False once the process has ended, also if nobody has waited for it. One that
/// replaced itself by exec() still counts as alive.
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

/// What a file is, whoever opens it.
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
  std::uint64_t position; // in the file; the rest is for `kind` to say
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
/// Throws orErrorInvalidValue for bytes that no write_handle() has written, and
/// orErrorNotPermitted for a handle of this process.
Handle read_handle(const unsigned char* bytes, Kind kind);
/// Opens the file of a handle of another process. Throws orErrorInvalidValue if
/// the file is gone, and orErrorMemoryAllocation.
File open_file(const Handle& handle);

/// Throws orErrorInvalidValue: what the handle names is gone.
[[noreturn]] void fail_gone(const Handle& handle);

} // namespace openreg::ipc
