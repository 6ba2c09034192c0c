// SPDX-License-Identifier: BSD-3-Clause
// The injected failures of the process.
#include "failures/failure_injection.h"

#include "base/device_number.h"
#include "base/handle_table.h"
#include "base/system_thread.h"

#include <algorithm>
#include <iomanip>
#include <locale>
#include <mutex>
#include <random>
#include <sstream>
#include <string>
#include <thread>
#include <utility>

namespace openreg::failure_injection {
namespace {

class InjectedFailure {
 public:
  void start(const orFailureSpec& spec) {
    spec_ = spec;
    calls_ = hits_ = 0;
    random_.seed(spec.seed);
  }

  bool counts(orFailureSite site, int device) const {
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
  const orFailureSpec& spec() const {
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

  orFailureSpec spec_ = OPENREG_FAILURE_SPEC_INIT;
  std::uint64_t calls_ = 0;
  std::uint64_t hits_ = 0;
  std::mt19937_64 random_;
};

struct InjectedFailures {
  std::mutex mutex;
  std::vector<InjectedFailure*> live; // in the order of their injection
  std::vector<InjectedFailure*> recycled;
  HandleTable<InjectedFailure, orFailure_t, HandleKind::kFailure> handles;
};

InjectedFailures& failures() {
  static auto* value = new InjectedFailures;
  return *value;
}

InjectedFailure* start(const orFailureSpec& spec) {
  InjectedFailures& all = failures();
  const std::lock_guard lock(all.mutex);
  if (all.recycled.empty()) {
    all.recycled.push_back(new InjectedFailure);
  }
  InjectedFailure* failure = all.recycled.back();
  all.recycled.pop_back();
  failure->start(spec);
  all.live.push_back(failure);
  g_armed.store(true, std::memory_order_relaxed);
  return failure;
}

Error error_of(const orFailureSpec& spec, std::uint64_t call, int device) {
  if (spec.error == orSuccess) {
    return {};
  }
  static constexpr const char* kSites[] = {
      "allocation", "allocation of pinned memory", "launch", "copy"};
  std::string message = "injected failure: " + std::string(kSites[spec.site]) +
      " number " + std::to_string(call);
  if (device >= 0) {
    message += " on device " + std::to_string(device);
  }
  return {spec.error, std::move(message)};
}

bool accepts(orFailureSite site, orError_t error) {
  switch (error) {
    case orSuccess:
      return true;
    case orErrorMemoryAllocation:
      return site == orFailureMalloc || site == orFailureMallocHost;
    case orErrorLaunchFailure:
    case orErrorIllegalAddress:
      return site == orFailureLaunch || site == orFailureCopy;
    case orErrorDeviceLost:
      return site != orFailureMallocHost;
    default:
      return false;
  }
}

/// A number with all digits that distinguish it from others.
std::string exact(double value) {
  std::string text; // std::to_chars() needs libstdc++ 11
  for (const int digits : {15, 16, 17}) {
    std::ostringstream stream;
    stream.imbue(std::locale::classic());
    stream << std::setprecision(digits) << value;
    text = stream.str();
    std::istringstream again(text);
    again.imbue(std::locale::classic());
    double read = 0;
    if (again >> read && read == value) {
      break;
    }
  }
  return text;
}

} // namespace

void check(const orFailureSpec& spec, int device_count) {
  const auto reject = [](const std::string& text) {
    throw Failure(orErrorInvalidValue, "spec." + text);
  };
  if (spec.site < orFailureMalloc || spec.site > orFailureCopy) {
    reject(
        "site " + std::to_string(spec.site) +
        " is not an orFailureSite: expected 0 to 3");
  }
  if (spec.device != -1) {
    check_device(spec.device, device_count);
    if (spec.site == orFailureMallocHost) {
      reject("device must be -1: pinned memory belongs to no device");
    }
  }
  if (!accepts(spec.site, spec.error)) {
    reject(
        "error " + std::to_string(spec.error) + ", " +
        describe(spec.error).name +
        " cannot be injected at this site: expected orSuccess, "
        "orErrorMemoryAllocation for allocations, orErrorLaunchFailure or "
        "orErrorIllegalAddress for launches and copies, or orErrorDeviceLost "
        "where there is a device");
  }
  constexpr std::uint64_t kMaxDelay = 3'600'000'000; // an hour
  if (spec.delay > kMaxDelay) {
    reject(
        "delay " + std::to_string(spec.delay) +
        " is too long: expected at most " + std::to_string(kMaxDelay) + " us");
  }
  if (spec.error == orSuccess && spec.delay == 0) {
    reject("error and spec.delay are both 0: the failure would do nothing");
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
        ", but probability is set too: set only one of the two");
  }
}

void Hit::apply(const DeviceState* device) const {
  // Sleeps in slices, because the loss of the device ends the delay.
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

std::optional<Hit> count_call(orFailureSite site, int device) {
  std::optional<Hit> result;
  const std::lock_guard lock(failures().mutex);
  for (InjectedFailure* failure : failures().live) {
    // All of them count; the first one that hits decides.
    if (failure->counts(site, device) && failure->count() && !result) {
      const orFailureSpec& spec = failure->spec();
      result =
          Hit{error_of(spec, failure->counts().first, device),
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

void inject(const orFailureSpec& spec) {
  start(spec);
}

orFailure_t add(const orFailureSpec& spec) {
  return failures().handles.insert(start(spec));
}

std::pair<std::uint64_t, std::uint64_t> counts(orFailure_t failure) {
  const auto& object = failures().handles.get(failure, "failure");
  const std::lock_guard lock(failures().mutex);
  return object.counts();
}

void remove(orFailure_t failure) {
  auto* object = &failures().handles.remove(failure, "failure");
  const std::lock_guard lock(failures().mutex);
  auto& live = failures().live;
  live.erase(std::find(live.begin(), live.end(), object));
  failures().recycled.push_back(object);
  g_armed.store(!live.empty(), std::memory_order_relaxed);
}

std::size_t live_count() {
  const std::lock_guard lock(failures().mutex);
  return failures().live.size();
}

} // namespace openreg::failure_injection
