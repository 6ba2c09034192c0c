// SPDX-License-Identifier: BSD-3-Clause
// The modules of this process.
#include "platform/library.h"

#include "platform/windows/names.h"
#include "platform/windows/system.h"

#include <algorithm>
#include <cwctype>
#include <psapi.h>
#include <string_view>
#include <vector>

namespace openreg::platform {
namespace {

constexpr std::wstring_view kLibrary = L"openreg.dll";

HMODULE own_module() noexcept {
  HMODULE module = nullptr;
  GetModuleHandleExW(
      GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS |
          GET_MODULE_HANDLE_EX_FLAG_UNCHANGED_REFCOUNT,
      reinterpret_cast<LPCWSTR>(&own_module),
      &module);
  return module;
}

/// Empty if the path cannot be determined.
std::wstring path_of(HMODULE module) {
  std::wstring path(MAX_PATH, L'\0');
  for (;;) {
    const DWORD length = GetModuleFileNameW(
        module, path.data(), static_cast<DWORD>(path.size()));
    if (length < path.size()) {
      path.resize(length);
      return path;
    }
    path.resize(2 * path.size());
  }
}

bool is_library(const std::wstring& path) {
  std::wstring name = path.substr(path.find_last_of(L"\\/") + 1);
  std::transform(name.begin(), name.end(), name.begin(), [](wchar_t letter) {
    return static_cast<wchar_t>(std::towlower(letter));
  });
  return name == kLibrary || name == L"lib" + std::wstring(kLibrary);
}

} // namespace

std::string own_library() {
  return utf8_of(path_of(own_module()));
}

Copies find_copies() {
  Copies result;
  result.own = own_library();
  const HandleScope devices(OpenEventW(
      SYNCHRONIZE, FALSE, name_of_reservation(kDeviceReservation).c_str()));
  result.in_use = devices.get() != nullptr;
  std::vector<HMODULE> modules(64);
  for (;;) {
    const auto room = static_cast<DWORD>(modules.size() * sizeof(HMODULE));
    DWORD needed = 0;
    if (K32EnumProcessModules(
            GetCurrentProcess(), modules.data(), room, &needed) == 0) {
      return result;
    }
    const bool complete = needed <= room;
    modules.resize(needed / sizeof(HMODULE));
    if (complete) {
      break;
    }
  }
  for (const HMODULE module : modules) {
    const std::wstring path = path_of(module);
    if (module != own_module() && is_library(path)) {
      result.others.insert(utf8_of(path));
    }
  }
  return result;
}

} // namespace openreg::platform
