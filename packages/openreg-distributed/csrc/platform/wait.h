// SPDX-License-Identifier: BSD-3-Clause
// Waits on a word of memory that processes share.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace openreg::distributed {

/// Waits while the word has this value, but at most for a time. May return
/// early.
void wait_on(
    std::atomic<uint32_t>& word,
    uint32_t value,
    std::chrono::milliseconds most) noexcept;
/// Ends all waits on the word, after its value has changed.
void wake_all(std::atomic<uint32_t>& word) noexcept;

} // namespace openreg::distributed
