// SPDX-License-Identifier: BSD-3-Clause
// Functions to call when the group fails, before its calls end.
#pragma once

#include <c10/util/Exception.h>

#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

namespace openreg::distributed {

/// Copies and destructors of hooks in Python acquire the GIL, which another
/// thread may hold while it waits for the lock. They run without the lock.
class FailureHooks {
 public:
  using Hook = std::function<void()>;

  void add(int64_t id, Hook hook) {
    auto added = std::make_shared<const Hook>(std::move(hook));
    const std::lock_guard lock(mutex_);
    hooks_[id].swap(added);
  }
  void remove(int64_t id) {
    std::shared_ptr<const Hook> removed;
    const std::lock_guard lock(mutex_);
    if (const auto found = hooks_.find(id); found != hooks_.end()) {
      removed = std::move(found->second);
      hooks_.erase(found);
    }
  }
  /// Calls the hooks in the order of their numbers.
  void run() const {
    std::unique_lock lock(mutex_);
    const auto hooks = hooks_;
    lock.unlock();
    for (const auto& [id, hook] : hooks) {
      try {
        (*hook)();
      } catch (const std::exception& error) {
        TORCH_WARN("occl: abort hook ", id, " failed: ", error.what());
      }
    }
  }

 private:
  mutable std::mutex mutex_;
  std::map<int64_t, std::shared_ptr<const Hook>> hooks_;
};

} // namespace openreg::distributed
