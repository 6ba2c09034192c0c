// SPDX-License-Identifier: BSD-3-Clause
// Handles, and the files that they name.
#include "ipc/handle.h"

#include "base/error.h"
#include "platform/sharing.h"

#include <cstring>

namespace openreg::ipc {
namespace {

static_assert(sizeof(Handle) == OPENREG_IPC_HANDLE_SIZE);

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

} // namespace

ProcessId this_process() {
  static const ProcessId process = [] {
    ProcessId result = 0;
    if (const auto found = platform::this_process(result); !found) {
      throw Failure(
          orErrorNotSupported,
          "sharing with other processes needs an identity of this process, "
          "which cannot be determined: " +
              found.text());
    }
    return result;
  }();
  return process;
}

std::string name_of(ProcessId process) {
  return "process " + std::to_string(platform::number_of(process));
}

void write_handle(
    unsigned char* bytes,
    Kind kind,
    const File& file,
    std::uint64_t position,
    std::uint64_t id) {
  Handle handle{kind, 0, this_process(), file.id(), position, id, 0, 0};
  if (const auto published = platform::publish(file, handle.number);
      !published) {
    throw Failure(
        orErrorMemoryAllocation,
        std::string("the ") + thing(kind) +
            " cannot be made available to other processes: " +
            published.text());
  }
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
  File file;
  if (const auto opened = platform::open_published(
          handle.process, handle.number, handle.file, file);
      !opened) {
    const bool ours = opened.is_out_of_resources();
    throw Failure(
        ours ? orErrorMemoryAllocation : orErrorInvalidValue,
        std::string("the ") + thing(handle.kind) + " of " +
            name_of(handle.process) + " cannot be opened: " + opened.text() +
            (ours ? "" : "; both processes must be of the same user"));
  }
  if (!file) {
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
