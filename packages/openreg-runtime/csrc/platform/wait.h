// SPDX-License-Identifier: BSD-3-Clause
// Waits on a word of memory that processes share.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace openreg::platform {

/// Waits while the word has this value, but at most for a time. May return
/// early.
void wait_on(
    std::atomic<std::uint32_t>& word,
    std::uint32_t value,
    std::chrono::nanoseconds most) noexcept;
/// Ends waits on the word, after its value has changed.
void wake_one(std::atomic<std::uint32_t>& word) noexcept;
void wake_all(std::atomic<std::uint32_t>& word) noexcept;

} // namespace openreg::platform
