// SPDX-License-Identifier: BSD-3-Clause
// The workers of all streams, and the thread that ends those without work.
//
// A worker sleeps without a time limit, as a timer for each sleep costs as much
// as a small launch. Instead one thread, the watcher, looks at all of them from
// time to time. It ends soon after the last worker, so that the library holds
// no thread for a program that does not use it.
#pragma once

#include <cstddef>

namespace openreg {

class Stream;

namespace workers {

/// Notes that the stream is about to have a worker, for the watcher to look
/// at. Called with the stream locked. Throws std::bad_alloc.
void add(Stream& stream);
/// Notes that the worker ends. Called with the stream locked.
void remove(Stream& stream) noexcept;
/// Throws std::bad_alloc.
std::size_t count();

} // namespace workers
} // namespace openreg
