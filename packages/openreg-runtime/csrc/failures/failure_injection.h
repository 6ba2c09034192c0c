// SPDX-License-Identifier: BSD-3-Clause
// Injected failures: which call is hit, and by what.
//
// Calls are counted where they are made, not where their work runs, so that a
// program hits the same ones each time.
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

/// What happens to a call that is hit.
struct Hit {
  Error error; // orSuccess: only the delay
  std::chrono::microseconds delay;

  /// Waits, then throws the error if there is one. The failure of `device`,
  /// which may be null, ends both.
  void apply(const DeviceState* device) const;
};

/// True while a failure is injected; the hot paths ask nothing else.
inline std::atomic<bool> g_armed{false};

std::optional<Hit> count_call(orFailureSite site, int device);

inline bool armed() noexcept {
  return g_armed.load(std::memory_order_relaxed);
}

/// Counts one call for `device`, -1 if it has none.
inline std::optional<Hit> next(orFailureSite site, int device) {
  return armed() ? count_call(site, device) : std::nullopt;
}

/// What `hit` does to an allocation; null for `state` if it has no device.
void fail_allocation(const Hit& hit, DeviceState* state);

/// Counts an allocation, of a device or of pinned memory (-1 and null), and
/// fails it if it is hit.
inline void
count_allocation(orFailureSite site, int device, DeviceState* state) {
  if (armed()) {
    if (const auto hit = count_call(site, device)) {
      fail_allocation(*hit, state);
    }
  }
}

/// Reads OPENREG_FAILURES. Throws Failure with what is accepted.
std::vector<orFailureSpec> parse(std::string_view text, int device_count);
/// Throws Failure with what is accepted.
void check(const orFailureSpec& spec, int device_count);
/// Injects a checked failure that nobody removes.
void inject(const orFailureSpec& spec);

// The handles of failures; a wrong one throws orErrorInvalidHandle.
/// Injects a checked failure.
orFailure_t add(const orFailureSpec& spec);
/// How many calls it has counted, and how many of them it has hit.
std::pair<std::uint64_t, std::uint64_t> counts(orFailure_t failure);
void remove(orFailure_t failure);

std::size_t live_count();

} // namespace openreg::failure_injection
