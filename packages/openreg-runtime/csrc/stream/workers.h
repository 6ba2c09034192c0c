// SPDX-License-Identifier: BSD-3-Clause
// The workers of all streams, and the thread that ends idle ones.
//
// A worker sleeps without a time limit, because a timer for each sleep would
// cost as much as a small launch. Instead one thread, the watcher, checks all
// workers periodically. It ends soon after the last worker, so that a program
// that does not use the library has no extra thread.
#pragma once

#include <cstddef>

namespace openreg {

class Stream;

namespace workers {

/// Adds the stream to the watcher's list before its worker starts. Called with
/// the stream locked. Throws std::bad_alloc.
void add(Stream& stream);
/// Removes the stream when its worker ends. Called with the stream locked.
void remove(Stream& stream) noexcept;
/// Throws std::bad_alloc.
std::size_t count();

} // namespace workers
} // namespace openreg
