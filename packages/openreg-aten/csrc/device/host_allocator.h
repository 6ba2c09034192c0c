// SPDX-License-Identifier: BSD-3-Clause
// Pinned host memory that enqueued work still uses.
#pragma once

namespace openreg::aten {

/// Keeps the pinned block around `pointer` from being freed until
/// release_pinned(); gives the block's start, or null if `pointer` is not in
/// memory of this allocator.
void* hold_pinned(const void* pointer);
/// Ends one hold, given the block's start. Never takes the GIL.
void release_pinned(void* block) noexcept;

} // namespace openreg::aten
