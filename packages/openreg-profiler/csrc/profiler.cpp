// SPDX-License-Identifier: BSD-3-Clause
// The device's profiler for Kineto, and its registration.
#include "profiler.h"

#include "session.h"

#include <torch/csrc/profiler/standalone/privateuse1_profiler.h>

#include <algorithm>
#include <device_type.h>
#include <iterator>
#include <memory>
#include <set>
#include <string>

namespace openreg::profiler {
namespace {

using libkineto::ActivityType;

class Profiler final : public libkineto::IActivityProfiler {
 public:
  const std::string& name() const override {
    static const std::string value = "openreg";
    return value;
  }
  const std::set<ActivityType>& availableActivities() const override {
    static const std::set<ActivityType> value{
        ActivityType::CONCURRENT_KERNEL,
        ActivityType::GPU_MEMCPY,
        ActivityType::GPU_MEMSET,
        ActivityType::GPU_USER_ANNOTATION,
        call_type()};
    return value;
  }

  // [docs: configure]
  /// A profile of only the host has no session and no cost.
  std::unique_ptr<libkineto::IActivityProfilerSession> configure(
      const std::set<ActivityType>& types,
      const libkineto::Config& /*config*/) override {
    // PyTorch requests calls even for a profile of only the host.
    constexpr ActivityType kOfDevices[] = {
        ActivityType::CONCURRENT_KERNEL,
        ActivityType::GPU_MEMCPY,
        ActivityType::GPU_MEMSET};
    const bool has_devices = std::any_of(
        std::begin(kOfDevices), std::end(kOfDevices), [&](ActivityType each) {
          return types.count(each) > 0;
        });
    return has_devices ? std::make_unique<Session>(types) : nullptr;
  }
  std::unique_ptr<libkineto::IActivityProfilerSession> configure(
      int64_t /*begin*/,
      int64_t /*duration*/,
      const std::set<ActivityType>& types,
      const libkineto::Config& config) override {
    return configure(types, config);
  }
  // [docs: end]
};

} // namespace

void register_profiler() {
  namespace profiler = torch::profiler::impl;
  static const profiler::RegisterPrivateUse1Profiler<Profiler> registered;
  if (device_type() == c10::kCUDA) {
    // Otherwise PyTorch does this when a profile of PrivateUse1 begins.
    profiler::PrivateUse1ProfilerRegistry::instance().onKinetoInit();
  }
}

} // namespace openreg::profiler
