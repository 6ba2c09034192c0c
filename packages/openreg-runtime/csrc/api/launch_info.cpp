// SPDX-License-Identifier: BSD-3-Clause
// Checks what callers say of their launches.
#include "api/launch_info.h"

#include "base/error.h"
#include "base/struct_size.h"

#include <string>

namespace openreg {

LaunchInfo read_info(const orLaunchInfo* info) {
  check_struct_size(info, "info");
  if (info->kind > orActivityHostFunc) {
    throw Failure(
        orErrorInvalidValue,
        "info.kind " + std::to_string(static_cast<int>(info->kind)) +
            " is not orActivityKernel, -Memcpy, -Memset or -HostFunc");
  }
  if (info->direction > orMemcpyDefault ||
      info->hostMemory > orMemoryTypeDevice) {
    throw Failure(
        orErrorInvalidValue,
        "info.direction " + std::to_string(static_cast<int>(info->direction)) +
            " or info.hostMemory " +
            std::to_string(static_cast<int>(info->hostMemory)) +
            " is none: expected an orMemcpyKind and an orMemoryType");
  }
  LaunchInfo result;
  result.name = info->name;
  result.bytes = info->bytes & ((std::uint64_t{1} << 52) - 1);
  result.kind = info->kind & 0xF;
  result.direction = info->direction & 0xF;
  result.host_memory = info->hostMemory & 0xF;
  return result;
}

} // namespace openreg
