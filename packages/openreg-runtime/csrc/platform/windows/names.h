// SPDX-License-Identifier: BSD-3-Clause
// Names of kernel objects, which the processes of one session share.
#pragma once

#include "platform/file.h"
#include "platform/windows/system.h"

#include <cstdint>
#include <string>

namespace openreg::platform {

/// "Local\openreg-1-2-..."
template <typename... Numbers>
std::wstring make_name(Numbers... numbers) {
  std::wstring name = L"Local\\openreg";
  ((name += L'-', name += std::to_wstring(numbers)), ...);
  return name;
}

/// The name of a memory file.
inline std::wstring name_of(const FileId& id) {
  return make_name(id.first, id.second);
}

/// The name of an object that exists while this process has a reservation.
inline std::wstring name_of_reservation(const char* name) {
  return make_name(GetCurrentProcessId()) + L'-' +
      std::wstring(name, name + std::char_traits<char>::length(name));
}

} // namespace openreg::platform
