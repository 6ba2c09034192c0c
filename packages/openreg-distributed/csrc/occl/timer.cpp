// SPDX-License-Identifier: BSD-3-Clause
// The timer of DistributedDataParallel for the device, based on stream events.
#include "occl/streams.h"

#include <torch/csrc/distributed/c10d/reducer_timer.hpp>

#include <device_type.h>
#include <map>
#include <memory>
#include <optional>
#include <utility>

namespace openreg::distributed {
namespace {

class DeviceTimer final : public c10d::Timer {
 public:
  explicit DeviceTimer(c10::Device device) : device_(device) {}

  void record(Event event) override {
    Timer::record(event); // the host time, which is reported as well
    events_.insert_or_assign(
        event, record_event(current_stream(device_.index()), true));
  }

  std::optional<int64_t> measureDifference(Event start, Event end) override {
    const auto first = events_.find(start);
    const auto last = events_.find(end);
    if (first == events_.end() || last == events_.end()) {
      return std::nullopt; // there was no backward pass, or no communication
    }
    first->second->synchronize();
    last->second->synchronize();
    const double milliseconds = first->second->elapsedTime(*last->second);
    if (milliseconds < 0) {
      return std::nullopt; // they belong to different passes
    }
    return static_cast<int64_t>(milliseconds * 1e6);
  }

 private:
  c10::Device device_;
  std::map<Event, std::shared_ptr<c10::Event>> events_;
};

[[maybe_unused]] const bool registered = [] {
  auto* registry = c10d::TimerRegistry();
  if (registry->Has(device_type())) {
    return false;
  }
  registry->Register(
      device_type(), [](c10::Device device) -> std::unique_ptr<c10d::Timer> {
        return std::make_unique<DeviceTimer>(device);
      });
  return true;
}();

} // namespace
} // namespace openreg::distributed
