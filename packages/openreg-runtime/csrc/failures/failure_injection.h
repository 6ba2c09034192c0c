// SPDX-License-Identifier: BSD-3-Clause
// Injected failures: the calls they hit, and the errors they cause.
//
// Calls are counted when they are made, not when their work runs, so that every
// run of a program fails the same calls.
#pragma once

#include "base/device_state.h"
#include "base/error.h"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace openreg::failure_injection {

/// The effect on a call that is hit.
struct Hit {
  Error error; // orSuccess: only the delay
  std::chrono::microseconds delay;

  /// Waits, then throws the error, if any. A failure of `device`, unless null,
  /// ends the wait and is thrown.
  void apply(const DeviceState* device) const;
};

/// True while a failure is injected. Hot paths check only this flag.
inline std::atomic<bool> g_armed{false};

std::optional<Hit> count_call(orFailureSite site, int device);

inline bool armed() noexcept {
  return g_armed.load(std::memory_order_relaxed);
}

/// Counts one call for `device`, -1 if it has none.
inline std::optional<Hit> next(orFailureSite site, int device) {
  return armed() ? count_call(site, device) : std::nullopt;
}

/// Applies `hit` to an allocation; `state` is null for host memory.
void fail_allocation(const Hit& hit, DeviceState* state);

/// Counts an allocation of device or pinned memory (-1 and null), and fails it
/// if it is hit.
inline void
count_allocation(orFailureSite site, int device, DeviceState* state) {
  if (armed()) {
    if (const auto hit = count_call(site, device)) {
      fail_allocation(*hit, state);
    }
  }
}

/// Parses OPENREG_FAILURES. Throws Failure with the accepted values.
std::vector<orFailureSpec> parse(std::string_view text, int device_count);
/// Throws Failure with the accepted values.
void check(const orFailureSpec& spec, int device_count);
/// Injects a checked failure that nobody removes.
void inject(const orFailureSpec& spec);

// Failures by their handles; an invalid handle throws orErrorInvalidHandle.
/// Injects a checked failure.
orFailure_t add(const orFailureSpec& spec);
/// The number of counted calls, and the number of hits.
std::pair<std::uint64_t, std::uint64_t> counts(orFailure_t failure);
void remove(orFailure_t failure);

std::size_t live_count();

} // namespace openreg::failure_injection
