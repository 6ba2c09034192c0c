// SPDX-License-Identifier: BSD-3-Clause
// Pinned host memory that enqueued work still uses.
#pragma once

#include <c10/core/Storage.h>
#include <c10/core/Stream.h>

namespace openreg::aten {

/// Keeps the pinned block around a storage's memory, once it is freed, from
/// being reused before the work that `stream` has then; false if the memory is
/// not of this allocator.
bool record_pinned_use(const c10::Storage& storage, c10::Stream stream);

} // namespace openreg::aten
