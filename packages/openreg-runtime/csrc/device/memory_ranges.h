// SPDX-License-Identifier: BSD-3-Clause
// Pointer lookups, and checks that a range of bytes stays in its block.
#pragma once

#include "device/device.h"

#include <cstddef>

namespace openreg {

/// The device that owns a device pointer, or -1.
int device_of(const void* pointer);
/// The device of a block that the caller frees. Throws orErrorInvalidValue.
Device& owner_of(const void* pointer);
/// The live block that holds [pointer, pointer + count) of device memory.
/// Throws orErrorInvalidValue.
Block check_range(const char* argument, const void* pointer, std::size_t count);
/// Pins the live block around a device pointer. Throws orErrorInvalidValue.
Pin pin_block(const char* argument, const void* pointer);
/// Throws orErrorInvalidValue.
void check_kind(orMemcpyKind kind);
/// Checks both sides of a copy like check_range(), for a checked `kind`.
void check_copy(
    const void* dst,
    std::size_t dst_count,
    const void* src,
    std::size_t src_count,
    orMemcpyKind kind);
/// Like check_range() for memory that orMemset accepts: device or pinned.
void check_set(const char* argument, const void* pointer, std::size_t count);

} // namespace openreg
