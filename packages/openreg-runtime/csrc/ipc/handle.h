// SPDX-License-Identifier: BSD-3-Clause
// Handles that processes exchange: a process, and one of its files.
//
// All shared memory lies in memory files, which other processes of the same
// user can open.
#pragma once

#include "platform/file.h"
#include "platform/process.h"

#include <cstddef>
#include <cstdint>
#include <string>

namespace openreg::ipc {

using platform::alive;
using platform::File;
using platform::FileId;
using platform::ProcessId;

/// Throws orErrorNotSupported.
ProcessId this_process();
/// "process 1234"
std::string name_of(ProcessId process);

enum class Kind : std::uint32_t { kMemory = 0x316d726f, kEvent = 0x3165726f };

/// The bytes of a handle.
struct Handle {
  Kind kind;           // and the version of this layout
  std::int32_t number; // of the file in the process that made the handle
  ProcessId process;
  FileId file;
  std::uint64_t position; // in the file, for memory handles
  std::uint64_t id;
  std::uint64_t unused;
  std::uint64_t checksum;
};

/// Writes the 64 bytes of a handle. Throws orErrorNotSupported and
/// orErrorMemoryAllocation.
void write_handle(
    unsigned char* bytes,
    Kind kind,
    const File& file,
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
