// SPDX-License-Identifier: BSD-3-Clause
// OPENREG_UNINITIALIZED=nan: memory that no operator has written holds a
// pattern that shows in results.
#pragma once

#include <openreg/openreg.h>

#include <c10/core/Allocator.h>

#include <cstddef>
#include <cstdint>

namespace openreg::aten {

/// The pattern, in units of two bytes. It is NaN in float16, bfloat16, float32,
/// float64, float8_e4m3fn and float8_e5m2. As int16, int32 and int64 it is so
/// large that no tensor has such an index.
constexpr uint16_t kUnwritten = 0x7fff;

/// Whether OPENREG_UNINITIALIZED is nan. Throws if the value is invalid.
bool fills_unwritten();

/// Writes the pattern to memory that this thread can write, and that no pending
/// work uses.
void write_unwritten(void* begin, size_t size);

/// Writes the pattern to a block of device memory in the order of its stream:
/// immediately if the stream is idle or runs this thread. Does nothing while
/// the stream is captured for a graph with another pool, because replays would
/// write to the block.
orError_t enqueue_unwritten(
    orStream_t stream,
    const c10::MempoolId_t& pool,
    void* begin,
    size_t size);

} // namespace openreg::aten
