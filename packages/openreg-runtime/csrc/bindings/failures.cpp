// SPDX-License-Identifier: BSD-3-Clause
// The Python class InjectedFailure, and resource_usage().
#include "bindings/bindings.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include <tuple>

namespace openreg::python {
namespace {

using namespace nb::literals;

// The names of OPENREG_FAILURES.
constexpr std::pair<const char*, orFailureSite> kSites[] = {
    {"malloc", orFailureMalloc},
    {"malloc_host", orFailureMallocHost},
    {"launch", orFailureLaunch},
    {"copy", orFailureCopy}};
constexpr std::pair<const char*, orError_t> kErrors[] = {
    {"none", orSuccess},
    {"MemoryAllocation", orErrorMemoryAllocation},
    {"LaunchFailure", orErrorLaunchFailure},
    {"IllegalAddress", orErrorIllegalAddress},
    {"DeviceLost", orErrorDeviceLost}};

template <typename Value, std::size_t N>
Value choose(
    const std::pair<const char*, Value> (&choices)[N],
    const std::string& name,
    const char* argument) {
  std::string accepted;
  for (const auto& [known, value] : choices) {
    if (name == known) {
      return value;
    }
    accepted.append(accepted.empty() ? "" : ", ").append(known);
  }
  const std::string text = std::string("inject_failure: ") + argument +
      " is '" + name + "', expected one of " + accepted;
  throw nb::value_error(text.c_str());
}

class InjectedFailure {
 public:
  explicit InjectedFailure(const orFailureSpec& spec) {
    check(orFailureInject(&handle_, &spec));
  }
  InjectedFailure(const InjectedFailure&) = delete;
  InjectedFailure& operator=(const InjectedFailure&) = delete;
  ~InjectedFailure() {
    if (handle_ != nullptr) {
      static_cast<void>(orFailureRemove(handle_));
    }
  }

  void remove() {
    if (handle_ != nullptr) {
      update();
      check(orFailureRemove(handle_));
      handle_ = nullptr;
    }
  }
  std::uint64_t calls() {
    update();
    return calls_;
  }
  std::uint64_t hits() {
    update();
    return hits_;
  }

 private:
  void update() {
    if (handle_ != nullptr) {
      check(orFailureGetCounts(handle_, &calls_, &hits_));
    }
  }

  orFailure_t handle_ = nullptr;
  std::uint64_t calls_ = 0; // the last ones, once it is removed
  std::uint64_t hits_ = 0;
};

using Usage = orResourceUsage;

auto resource_usage() {
  Usage usage = OPENREG_RESOURCE_USAGE_INIT;
  check(orGetResourceUsage(&usage));
  return std::make_tuple(
      usage.deviceBlocks,
      usage.deviceBytes,
      usage.hostBlocks,
      usage.hostBytes,
      usage.hostRegistrations,
      usage.unprotectedBlocks,
      usage.ipcMappings,
      usage.streams,
      usage.events,
      usage.failures,
      usage.threads,
      usage.graphs);
}

} // namespace

void init_failures(nb::module_& m) {
  nb::class_<InjectedFailure>(
      m,
      "InjectedFailure",
      "A failure injected by ``inject_failure``, and its counts.")
      .def(
          "__init__",
          [](InjectedFailure* self,
             const std::string& site,
             const std::string& error,
             int device,
             std::uint64_t delay,
             std::uint64_t first,
             std::uint64_t period,
             double probability,
             std::uint64_t seed) {
            orFailureSpec spec = OPENREG_FAILURE_SPEC_INIT;
            spec.site = choose(kSites, site, "site");
            spec.error = choose(kErrors, error, "error");
            spec.device = device;
            spec.delay = delay;
            spec.first = first;
            spec.period = period;
            spec.probability = probability;
            spec.seed = seed;
            new (self) InjectedFailure(spec);
          },
          nb::kw_only(),
          "site"_a,
          "error"_a,
          "device"_a,
          "delay"_a,
          "first"_a,
          "period"_a,
          "probability"_a,
          "seed"_a)
      .def(
          "remove",
          &InjectedFailure::remove,
          "Removes the failure; its counts stay.")
      .def_prop_ro(
          "calls", &InjectedFailure::calls, "The number of counted calls.")
      .def_prop_ro("hits", &InjectedFailure::hits, "Calls that it has hit.");

  m.def("resource_usage", &resource_usage, "The values of ResourceUsage.");
}

} // namespace openreg::python
