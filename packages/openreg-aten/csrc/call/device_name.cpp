// SPDX-License-Identifier: BSD-3-Clause
// Replaces the kernel names that AT_DISPATCH puts into errors.
#include "call/device_name.h"

#include "base/keys.h"

#include <c10/core/DeviceType.h>

#include <string_view>

namespace openreg::aten {

std::string name_device(std::string text) {
  constexpr std::string_view kRefusal = "\" not implemented for '";
  constexpr std::string_view kCpu = "_cpu";
  const std::size_t end = text.find(kRefusal);
  const std::size_t quote =
      end == std::string::npos || end == 0 ? end : text.rfind('"', end - 1);
  if (quote == std::string::npos) {
    return text;
  }
  const std::size_t found = text.rfind(kCpu, end);
  if (found == std::string::npos || found < quote) {
    return text;
  }
  const char next = text[found + kCpu.size()];
  if (next == '"' || next == '_') {
    text.replace(found, kCpu.size(), "_" + device_type_name());
  }
  return text;
}

} // namespace openreg::aten
