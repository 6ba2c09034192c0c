// SPDX-License-Identifier: BSD-3-Clause
// The device's profiler for Kineto, and its registration.
#include "profiler.h"

#include "session.h"

#include <torch/csrc/profiler/standalone/privateuse1_profiler.h>

#include <algorithm>
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
        ActivityType::PRIVATEUSE1_RUNTIME};
    return value;
  }

  // [docs: configure]
  /// A profile of only the host has no session and no cost.
  std::unique_ptr<libkineto::IActivityProfilerSession> configure(
      const std::set<ActivityType>& types,
      const libkineto::Config& /*config*/) override {
    // PyTorch requests PRIVATEUSE1_RUNTIME even for a profile of only the host.
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
  static const torch::profiler::impl::RegisterPrivateUse1Profiler<Profiler>
      registered;
}

} // namespace openreg::profiler
