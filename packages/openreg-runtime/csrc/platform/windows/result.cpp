// SPDX-License-Identifier: BSD-3-Clause
// Results from GetLastError().
#include "platform/result.h"

#include "platform/windows/system.h"

#include <cwctype>

namespace openreg::platform {

Result Result::last() noexcept {
  return Result(static_cast<int>(GetLastError()));
}

Result Result::full() noexcept {
  return Result(ERROR_DISK_FULL);
}

std::string Result::text() const {
  constexpr DWORD kRoom = 512;
  std::wstring text(kRoom, L'\0');
  text.resize(FormatMessageW(
      FORMAT_MESSAGE_FROM_SYSTEM | FORMAT_MESSAGE_IGNORE_INSERTS,
      nullptr,
      static_cast<DWORD>(code_),
      0,
      text.data(),
      kRoom,
      nullptr));
  // The system ends a text with a period and a line break.
  while (!text.empty() &&
         (text.back() == L'.' || std::iswspace(text.back()) != 0)) {
    text.pop_back();
  }
  return text.empty() ? "error " + std::to_string(code_) : utf8_of(text);
}

bool Result::is_full() const noexcept {
  return code_ == ERROR_DISK_FULL;
}

bool Result::is_out_of_files() const noexcept {
  return code_ == ERROR_TOO_MANY_OPEN_FILES;
}

bool Result::is_out_of_resources() const noexcept {
  switch (code_) {
    case ERROR_COMMITMENT_LIMIT:
    case ERROR_NO_SYSTEM_RESOURCES:
    case ERROR_NOT_ENOUGH_MEMORY:
    case ERROR_NOT_ENOUGH_QUOTA:
    case ERROR_OUTOFMEMORY:
      return true;
    default:
      return is_out_of_files();
  }
}

} // namespace openreg::platform
