// SPDX-License-Identifier: BSD-3-Clause
// What a forked child inherits: objects without their threads and shared
// memory.
#pragma once

#include <atomic>
#include <cstdint>

namespace openreg::distributed {

/// How many forks lie between this process and the one that loaded the module.
inline std::atomic<uint64_t> g_forks{0};

/// The process that made the object that this is a member of.
class Maker {
 public:
  Maker();
  /// False in a forked child. It asks the system nothing: each collective does.
  bool is_this_process() const {
    return forks_ == g_forks.load(std::memory_order_relaxed);
  }

 private:
  uint64_t forks_;
};

} // namespace openreg::distributed
