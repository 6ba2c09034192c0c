// SPDX-License-Identifier: BSD-3-Clause
// The Windows API, and its functions that older versions of Windows lack.
#pragma once

#ifndef WIN32_LEAN_AND_MEAN
#define WIN32_LEAN_AND_MEAN
#endif
#ifndef NOMINMAX
#define NOMINMAX
#endif
#include <cstdint>
#include <string>
#include <windows.h>

namespace openreg::platform {

/// Functions of kernelbase.dll, which the import libraries of compilers lack.
/// Null before Windows 10, version 1803.
struct System {
  decltype(&::VirtualAlloc2) allocate;
  decltype(&::MapViewOfFile3) map_view;
  decltype(&::UnmapViewOfFile2) unmap_view;
  decltype(&::WaitOnAddress) wait_on_address;
  decltype(&::WakeByAddressSingle) wake_one;
  decltype(&::WakeByAddressAll) wake_all;
  decltype(&::CompareObjectHandles) compare_handles;

  /// Whether memory can be mapped at reserved addresses.
  bool has_placeholders() const noexcept {
    return allocate != nullptr && map_view != nullptr && unmap_view != nullptr;
  }
};
const System& system_functions() noexcept;

inline HANDLE to_handle(std::intptr_t value) noexcept {
  return reinterpret_cast<HANDLE>(value);
}
inline std::intptr_t to_number(HANDLE handle) noexcept {
  return reinterpret_cast<std::intptr_t>(handle);
}

/// Closes a handle at the end of the scope.
class HandleScope {
 public:
  explicit HandleScope(HANDLE handle) noexcept : handle_(handle) {}
  HandleScope(const HandleScope&) = delete;
  HandleScope& operator=(const HandleScope&) = delete;
  ~HandleScope() {
    if (handle_ != nullptr) {
      CloseHandle(handle_);
    }
  }
  HANDLE get() const noexcept {
    return handle_;
  }

 private:
  HANDLE handle_;
};

/// UTF-8 from UTF-16.
std::string utf8_of(const std::wstring& text);

} // namespace openreg::platform
