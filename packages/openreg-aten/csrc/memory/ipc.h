// SPDX-License-Identifier: BSD-3-Clause
// Device memory that processes share.
#pragma once

#include "base/export.h"

#include <c10/core/Storage.h>

#include <cstddef>
#include <string>
#include <utility>

namespace openreg::aten {

/// Returns the handle of the block that contains `storage`, and the offset in
/// bytes from its start, for another process. Throws if the block belongs to
/// another process.
OPENREG_ATEN_API std::pair<std::string, size_t> ipc_handle(
    const c10::Storage& storage);

/// Opens memory of another process as a storage that cannot be resized. The
/// file descriptor `guard` is closed when the storage is freed, or if this
/// throws. The other process detects that, and keeps the memory until then.
OPENREG_ATEN_API c10::Storage open_ipc(
    const std::string& handle,
    c10::DeviceIndex device,
    size_t offset,
    size_t size,
    int guard);

} // namespace openreg::aten
