// SPDX-License-Identifier: BSD-3-Clause
// Detects objects that a forked child inherits without their threads and shared
// memory.
#pragma once

#include <atomic>
#include <cstdint>

namespace openreg::distributed {

/// The number of forks between this process and the one that loaded the module.
inline std::atomic<uint64_t> g_forks{0};

/// Remembers the process that created the enclosing object.
class Maker {
 public:
  Maker();
  /// False in a forked child. Makes no system call, because each collective
  /// calls it.
  bool is_this_process() const {
    return forks_ == g_forks.load(std::memory_order_relaxed);
  }

 private:
  uint64_t forks_;
};

} // namespace openreg::distributed
