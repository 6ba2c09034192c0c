// SPDX-License-Identifier: BSD-3-Clause
// Lookups in kernelbase.dll, and conversions of text.
#include "platform/windows/system.h"

namespace openreg::platform {
namespace {

template <typename Function>
void look_up(HMODULE library, const char* name, Function& function) noexcept {
  function = reinterpret_cast<Function>(
      reinterpret_cast<void*>(GetProcAddress(library, name)));
}

} // namespace

const System& system_functions() noexcept {
  static const System system = [] {
    System found{};
    if (const HMODULE library = GetModuleHandleW(L"kernelbase.dll")) {
      look_up(library, "VirtualAlloc2", found.allocate);
      look_up(library, "MapViewOfFile3", found.map_view);
      look_up(library, "UnmapViewOfFile2", found.unmap_view);
      look_up(library, "WaitOnAddress", found.wait_on_address);
      look_up(library, "WakeByAddressSingle", found.wake_one);
      look_up(library, "WakeByAddressAll", found.wake_all);
      look_up(library, "CompareObjectHandles", found.compare_handles);
    }
    return found;
  }();
  return system;
}

std::string utf8_of(const std::wstring& text) {
  const int length = static_cast<int>(text.size());
  const auto convert = [&](char* to, int room) {
    return WideCharToMultiByte(
        CP_UTF8, 0, text.data(), length, to, room, nullptr, nullptr);
  };
  std::string result(static_cast<std::size_t>(convert(nullptr, 0)), '\0');
  convert(result.data(), static_cast<int>(result.size()));
  return result;
}

} // namespace openreg::platform
