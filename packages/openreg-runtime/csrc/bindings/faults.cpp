// SPDX-License-Identifier: BSD-3-Clause
// The Python class Fault, and resource_usage().
#include "bindings/bindings.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include <tuple>

namespace openreg::python {
namespace {

using namespace nb::literals;

// The names of OPENREG_FAULTS.
constexpr std::pair<const char*, orFaultSite> kSites[] = {
    {"malloc", orFaultMalloc},
    {"malloc_host", orFaultMallocHost},
    {"launch", orFaultLaunch},
    {"copy", orFaultCopy}};
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
  const std::string text = std::string("inject_fault: ") + argument + " is '" +
      name + "', expected one of " + accepted;
  throw nb::value_error(text.c_str());
}

class Fault {
 public:
  explicit Fault(const orFaultSpec& spec) {
    check(orFaultInject(&handle_, &spec));
  }
  Fault(const Fault&) = delete;
  Fault& operator=(const Fault&) = delete;
  ~Fault() {
    if (handle_ != nullptr) {
      static_cast<void>(orFaultRemove(handle_));
    }
  }

  void remove() {
    if (handle_ != nullptr) {
      update();
      check(orFaultRemove(handle_));
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
      check(orFaultGetCounts(handle_, &calls_, &hits_));
    }
  }

  orFault_t handle_ = nullptr;
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
      usage.faults,
      usage.threads);
}

} // namespace

void init_faults(nb::module_& m) {
  nb::class_<Fault>(
      m, "Fault", "A fault that ``inject_fault`` injects, and its counts.")
      .def(
          "__init__",
          [](Fault* self,
             const std::string& site,
             const std::string& error,
             int device,
             std::uint64_t delay,
             std::uint64_t first,
             std::uint64_t period,
             double probability,
             std::uint64_t seed) {
            orFaultSpec spec = OPENREG_FAULT_SPEC_INIT;
            spec.site = choose(kSites, site, "site");
            spec.error = choose(kErrors, error, "error");
            spec.device = device;
            spec.delay = delay;
            spec.first = first;
            spec.period = period;
            spec.probability = probability;
            spec.seed = seed;
            new (self) Fault(spec);
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
      .def("remove", &Fault::remove, "Ends the fault; its counts stay.")
      .def_prop_ro("calls", &Fault::calls, "Calls that it has counted.")
      .def_prop_ro("hits", &Fault::hits, "Calls that it has hit.");

  m.def("resource_usage", &resource_usage, "The values of ResourceUsage.");
}

} // namespace openreg::python
