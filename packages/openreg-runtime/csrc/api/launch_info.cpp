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
  return {
      info->name,
      info->bytes,
      static_cast<std::uint8_t>(info->kind),
      static_cast<std::uint8_t>(info->direction),
      static_cast<std::uint8_t>(info->hostMemory)};
}

} // namespace openreg
