// SPDX-License-Identifier: BSD-3-Clause
// The private pools of graphs: memory that replays use at any time, so that
// nobody else gets it before the last graph is gone that has it.
#pragma once

#include <openreg/openreg.h>

#include <c10/core/Allocator.h>

namespace openreg::aten {

/// The number of a new pool.
c10::MempoolId_t new_graph_pool();
/// Counts one more graph that captures into a pool, on all devices.
void retain_graph_pool(const c10::MempoolId_t& pool);
/// Counts one less, once the work that `last` has now is completed: the stream
/// of the last replay, or null. Without any, empty_cache() releases the memory
/// that is not in use.
void release_graph_pool(const c10::MempoolId_t& pool, orStream_t last);

} // namespace openreg::aten
