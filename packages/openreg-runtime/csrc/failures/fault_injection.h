// SPDX-License-Identifier: BSD-3-Clause
// Injected faults: which call is hit, and by what.
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

namespace openreg::fault_injection {

/// What happens to a call that is hit.
struct Hit {
  Error error; // orSuccess: only the delay
  std::chrono::microseconds delay;

  /// Waits, then throws the error if there is one. The failure of `device`,
  /// which may be null, ends both.
  void apply(const DeviceState* device) const;
};

/// True while there is a fault; the hot paths ask nothing else.
inline std::atomic<bool> g_armed{false};

std::optional<Hit> count_call(orFaultSite site, int device);

inline bool armed() noexcept {
  return g_armed.load(std::memory_order_relaxed);
}

/// Counts one call for `device`, -1 if it has none.
inline std::optional<Hit> next(orFaultSite site, int device) {
  return armed() ? count_call(site, device) : std::nullopt;
}

/// What `hit` does to an allocation; null for `state` if it has no device.
void fail_allocation(const Hit& hit, DeviceState* state);

/// Counts an allocation, of a device or of pinned memory (-1 and null), and
/// fails it if it is hit.
inline void count_allocation(orFaultSite site, int device, DeviceState* state) {
  if (armed()) {
    if (const auto hit = count_call(site, device)) {
      fail_allocation(*hit, state);
    }
  }
}

/// Reads OPENREG_FAULTS. Throws Failure with what is accepted.
std::vector<orFaultSpec> parse(std::string_view text, int device_count);
/// Throws Failure with what is accepted.
void check(const orFaultSpec& spec, int device_count);
/// Injects a checked fault that nobody removes.
void inject(const orFaultSpec& spec);

// The handles of faults; a wrong one throws orErrorInvalidHandle.
/// Injects a checked fault.
orFault_t add(const orFaultSpec& spec);
/// How many calls it has counted, and how many of them it has hit.
std::pair<std::uint64_t, std::uint64_t> counts(orFault_t fault);
void remove(orFault_t fault);

std::size_t live_count();

} // namespace openreg::fault_injection
