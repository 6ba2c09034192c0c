// SPDX-License-Identifier: BSD-3-Clause
// The faults of the process.
#include "failures/fault_injection.h"

#include "base/device_number.h"
#include "base/handle_table.h"
#include "base/system_thread.h"

#include <algorithm>
#include <charconv>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <utility>

namespace openreg::fault_injection {
namespace {

class Fault {
 public:
  void start(const orFaultSpec& spec) {
    spec_ = spec;
    calls_ = hits_ = 0;
    random_.seed(spec.seed);
  }

  bool counts(orFaultSite site, int device) const {
    return site == spec_.site && (spec_.device == -1 || spec_.device == device);
  }
  /// Counts a call; true if it is hit.
  bool count() {
    ++calls_;
    const bool hit = is_hit();
    hits_ += hit ? 1 : 0;
    return hit;
  }
  std::pair<std::uint64_t, std::uint64_t> counts() const {
    return {calls_, hits_};
  }
  const orFaultSpec& spec() const {
    return spec_;
  }

 private:
  bool is_hit() {
    if (calls_ < spec_.first) {
      return false;
    }
    if (spec_.probability > 0) {
      // Not a standard distribution: those may differ between libraries.
      constexpr double kScale = 1.0 / 9007199254740992.0; // 2^-53
      return static_cast<double>(random_() >> 11) * kScale < spec_.probability;
    }
    const std::uint64_t after = calls_ - spec_.first;
    return spec_.period == 0 ? after == 0 : after % spec_.period == 0;
  }

  orFaultSpec spec_ = OPENREG_FAULT_SPEC_INIT;
  std::uint64_t calls_ = 0;
  std::uint64_t hits_ = 0;
  std::mt19937_64 random_;
};

struct Faults {
  std::mutex mutex;
  std::vector<Fault*> live; // in the order in which they were injected
  std::vector<Fault*> recycled;
  HandleTable<Fault, orFault_t, HandleKind::kFault> handles;
};

Faults& faults() {
  static auto* value = new Faults;
  return *value;
}

Fault* start(const orFaultSpec& spec) {
  Faults& all = faults();
  const std::lock_guard lock(all.mutex);
  if (all.recycled.empty()) {
    all.recycled.push_back(new Fault);
  }
  Fault* fault = all.recycled.back();
  all.recycled.pop_back();
  fault->start(spec);
  all.live.push_back(fault);
  g_armed.store(true, std::memory_order_relaxed);
  return fault;
}

Error error_of(const orFaultSpec& spec, std::uint64_t call, int device) {
  if (spec.error == orSuccess) {
    return {};
  }
  static constexpr const char* kSites[] = {
      "allocation", "allocation of pinned memory", "launch", "copy"};
  std::string message = "injected fault: " + std::string(kSites[spec.site]) +
      " number " + std::to_string(call);
  if (device >= 0) {
    message += " on device " + std::to_string(device);
  }
  return {spec.error, std::move(message)};
}

bool accepts(orFaultSite site, orError_t error) {
  switch (error) {
    case orSuccess:
      return true;
    case orErrorMemoryAllocation:
      return site == orFaultMalloc || site == orFaultMallocHost;
    case orErrorLaunchFailure:
    case orErrorIllegalAddress:
      return site == orFaultLaunch || site == orFaultCopy;
    case orErrorDeviceLost:
      return site != orFaultMallocHost;
    default:
      return false;
  }
}

/// A number in so many digits that it is no other one.
std::string exact(double value) {
  char text[32];
  const auto [end, error] = std::to_chars(text, text + sizeof(text), value);
  return error == std::errc() ? std::string(text, end) : "?";
}

} // namespace

void check(const orFaultSpec& spec, int device_count) {
  const auto reject = [](const std::string& text) {
    throw Failure(orErrorInvalidValue, "spec." + text);
  };
  if (spec.site < orFaultMalloc || spec.site > orFaultCopy) {
    reject(
        "site " + std::to_string(spec.site) +
        " is not an orFaultSite: expected 0 to 3");
  }
  if (spec.device != -1) {
    check_device(spec.device, device_count);
    if (spec.site == orFaultMallocHost) {
      reject("device must be -1: pinned memory belongs to no device");
    }
  }
  if (!accepts(spec.site, spec.error)) {
    reject(
        "error " + std::to_string(spec.error) + ", " +
        describe(spec.error).name +
        " cannot happen there: expected orSuccess, orErrorMemoryAllocation "
        "for allocations, orErrorLaunchFailure or orErrorIllegalAddress for "
        "launches and copies, or orErrorDeviceLost where there is a device");
  }
  constexpr std::uint64_t kMaxDelay = 3'600'000'000; // an hour
  if (spec.delay > kMaxDelay) {
    reject(
        "delay " + std::to_string(spec.delay) +
        " is too long: expected at most " + std::to_string(kMaxDelay) + " us");
  }
  if (spec.error == orSuccess && spec.delay == 0) {
    reject("error and spec.delay are both 0: the fault would do nothing");
  }
  if (spec.first == 0) {
    reject("first is 0: calls are counted from 1");
  }
  if (!(spec.probability >= 0 && spec.probability <= 1)) {
    reject("probability " + exact(spec.probability) + " is not in [0, 1]");
  }
  if (spec.probability > 0 && spec.period != 0) {
    reject(
        "period is " + std::to_string(spec.period) +
        ", which is not used beside a probability: expected one of the two");
  }
}

void Hit::apply(const DeviceState* device) const {
  // In slices: what a lost device runs ends.
  constexpr std::chrono::milliseconds kSlice{20};
  const auto failed = [device] {
    return device != nullptr && device->failed();
  };
  const CancellationDeferred deferred;
  const auto end = Deadline::Clock::now() + delay;
  for (auto now = Deadline::Clock::now(); now < end && !failed();
       now = Deadline::Clock::now()) {
    std::this_thread::sleep_until(std::min(end, now + kSlice));
  }
  if (error.code != orSuccess && !failed()) {
    throw Failure(error);
  }
}

std::optional<Hit> count_call(orFaultSite site, int device) {
  std::optional<Hit> result;
  const std::lock_guard lock(faults().mutex);
  for (Fault* fault : faults().live) {
    // All of them count; the first one that hits decides.
    if (fault->counts(site, device) && fault->count() && !result) {
      const orFaultSpec& spec = fault->spec();
      result =
          Hit{error_of(spec, fault->counts().first, device),
              std::chrono::microseconds(spec.delay)};
    }
  }
  return result;
}

void fail_allocation(const Hit& hit, DeviceState* state) {
  try {
    hit.apply(state);
  } catch (const Failure& failure) {
    if (state != nullptr && DeviceState::sticks(failure.error().code)) {
      state->fail(failure.error());
    }
    throw;
  }
  if (state != nullptr) {
    state->check(); // the device may have been lost during the delay
  }
}

void inject(const orFaultSpec& spec) {
  start(spec);
}

orFault_t add(const orFaultSpec& spec) {
  return faults().handles.insert(start(spec));
}

std::pair<std::uint64_t, std::uint64_t> counts(orFault_t fault) {
  const auto& object = faults().handles.get(fault, "fault");
  const std::lock_guard lock(faults().mutex);
  return object.counts();
}

void remove(orFault_t fault) {
  auto* object = &faults().handles.remove(fault, "fault");
  const std::lock_guard lock(faults().mutex);
  auto& live = faults().live;
  live.erase(std::find(live.begin(), live.end(), object));
  faults().recycled.push_back(object);
  g_armed.store(!live.empty(), std::memory_order_relaxed);
}

std::size_t live_count() {
  const std::lock_guard lock(faults().mutex);
  return faults().live.size();
}

} // namespace openreg::fault_injection
