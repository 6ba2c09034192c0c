// SPDX-License-Identifier: BSD-3-Clause
// Versioned structs of the C API: the caller's size of a struct.
#pragma once

#include "base/error.h"

#include <openreg/activity.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

namespace openreg {

/// The size of the first version of a struct, in bytes. Do not change a line
/// when a later version appends members.
template <typename Struct>
inline constexpr std::size_t kFirstSize = 0;
template <>
inline constexpr std::size_t kFirstSize<orDeviceProp> =
    offsetof(orDeviceProp, minor) + sizeof(int);
template <>
inline constexpr std::size_t kFirstSize<orExecutor> =
    offsetof(orExecutor, start) + sizeof(const char*);
template <>
inline constexpr std::size_t kFirstSize<orFailureSpec> =
    offsetof(orFailureSpec, seed) + sizeof(std::uint64_t);
template <>
inline constexpr std::size_t kFirstSize<orLaunchInfo> =
    offsetof(orLaunchInfo, bytes) + sizeof(std::uint64_t);
template <>
inline constexpr std::size_t kFirstSize<orMemPoolProps> =
    offsetof(orMemPoolProps, maxSize) + sizeof(std::size_t);
template <>
inline constexpr std::size_t kFirstSize<orPointerAttributes> =
    offsetof(orPointerAttributes, size) + sizeof(std::size_t);
template <>
inline constexpr std::size_t kFirstSize<orResourceUsage> =
    offsetof(orResourceUsage, threads) + sizeof(std::size_t);
template <>
inline constexpr std::size_t kFirstSize<orSetting> =
    offsetof(orSetting, nameCount) + sizeof(std::size_t);

/// Returns the caller's size of `*object`, the argument named `argument`.
/// Throws orErrorInvalidValue for null and for a size of no version.
template <typename Struct>
std::size_t check_struct_size(const Struct* object, const char* argument) {
  constexpr std::size_t kFirst = kFirstSize<Struct>;
  static_assert(kFirst > 0, "kFirstSize has no line for this struct");
  check_not_null(object, argument);
  const std::size_t size = object->structSize;
  if (size < kFirst || size > sizeof(Struct)) {
    throw Failure(
        orErrorInvalidValue,
        std::string(argument) + ".structSize " + std::to_string(size) +
            " is not that of any version of the struct: expected its sizeof, " +
            (size > sizeof(Struct) ? "and a library as new as the header; "
                                   : "") +
            "this library supports " + std::to_string(kFirst) + " to " +
            std::to_string(sizeof(Struct)) + " bytes");
  }
  return size;
}

/// Reads the caller's version of `*object`; missing members are 0.
template <typename Struct>
Struct read_struct(const Struct* object, const char* argument) {
  Struct result{};
  std::memcpy(&result, object, check_struct_size(object, argument));
  return result;
}

/// Writes the members of the caller's version to `*object`.
template <typename Struct>
void write_struct(Struct* object, const char* argument, Struct value) {
  value.structSize = check_struct_size(object, argument);
  std::memcpy(object, &value, value.structSize);
}

} // namespace openreg
