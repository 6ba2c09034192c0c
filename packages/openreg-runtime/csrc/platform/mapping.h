// SPDX-License-Identifier: BSD-3-Clause
// Addresses of this process, and mappings of memory files.
//
// Offsets are multiples of page_size(), and sizes in reservations, too.
#pragma once

#include "platform/file.h"
#include "platform/result.h"

#include <cstddef>
#include <cstdint>

namespace openreg::platform {

std::size_t page_size() noexcept;

enum class Access { kNone, kReadWrite };

/// Reserves addresses that take no memory and allow no access. Diagnostic tools
/// show the name, where the system has one for addresses; null for none.
Result reserve(std::size_t size, const char* name, std::byte*& begin);
/// Ends a reservation and all mappings in it.
void end_reservation(std::byte* begin, std::size_t size) noexcept;

/// Maps pages of a file at addresses of a reservation. A child that is forked
/// later does not have the mapping if it has access.
Result map_reserved(
    std::byte* begin,
    std::size_t size,
    const File& file,
    std::uint64_t offset,
    Access access);
/// Ends a mapping. The addresses stay reserved.
Result unmap_reserved(std::byte* begin, std::size_t size);
/// Changes the access to mapped pages of a reservation.
Result protect(std::byte* begin, std::size_t size, Access access);

/// Makes pages of a mapping in a reservation usable. Only Windows has to: it
/// counts committed pages against the memory of the machine, used or not.
#if defined(_WIN32)
Result commit(std::byte* begin, std::size_t size);
#else
inline Result commit(std::byte*, std::size_t) noexcept {
  return {};
}
#endif

/// Maps pages of a file with access, anywhere. A child that is forked later
/// has the mapping only if `inherited`.
Result map(
    const File& file,
    std::uint64_t offset,
    std::size_t size,
    bool inherited,
    std::byte*& begin);
void unmap(std::byte* begin, std::size_t size) noexcept;

} // namespace openreg::platform
