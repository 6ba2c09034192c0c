// SPDX-License-Identifier: BSD-3-Clause
// Windows versions of the system functions that the tests use on POSIX.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <filesystem>

inline int setenv(const char* name, const char* value, int /*overwrite*/) {
  return _putenv_s(name, value);
}
inline int unsetenv(const char* name) {
  return _putenv_s(name, "");
}

/// Creates a folder for files of this process.
std::filesystem::path make_temporary_folder();
void* load_library(const char* path);
void* find_function(void* library, const char* name);

/// The unit of the runtime's mappings.
std::size_t page_size();

/// The status of a process that an access violation has ended.
inline constexpr int kAccessViolation = static_cast<int>(0xC0000005u);
