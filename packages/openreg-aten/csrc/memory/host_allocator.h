// SPDX-License-Identifier: BSD-3-Clause
// Pinned host memory that enqueued work still uses.
#pragma once

#include <c10/core/Storage.h>
#include <c10/core/Stream.h>

namespace openreg::aten {

/// Delays the reuse of the pinned block of a storage, once it is freed, until
/// the work that `stream` then has is complete. Returns false if this allocator
/// does not own the memory.
bool record_pinned_use(const c10::Storage& storage, c10::Stream stream);

} // namespace openreg::aten
