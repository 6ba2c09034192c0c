// SPDX-License-Identifier: BSD-3-Clause
// Device memory that processes share.
#pragma once

#include "base/export.h"

#include <c10/core/Storage.h>

#include <cstddef>
#include <string>
#include <utility>

namespace openreg::aten {

/// What another process needs to find the memory of `storage`: the handle of
/// the block around it, and the offset in bytes from the start of that. Throws
/// if the block is itself another process's.
OPENREG_ATEN_API std::pair<std::string, size_t> ipc_handle(
    const c10::Storage& storage);

/// The memory of another process as a storage that cannot be resized. It
/// closes the file descriptor `guard` when it ends, also where this throws; the
/// other process sees that, and keeps the memory until then.
OPENREG_ATEN_API c10::Storage open_ipc(
    const std::string& handle,
    c10::DeviceIndex device,
    size_t offset,
    size_t size,
    int guard);

} // namespace openreg::aten
