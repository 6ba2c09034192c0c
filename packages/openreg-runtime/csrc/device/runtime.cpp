// SPDX-License-Identifier: BSD-3-Clause
// The devices, and their start and end.
#include "device/runtime.h"

#include "base/device_number.h"
#include "base/error.h"
#include "base/process.h"
#include "base/system_thread.h"
#include "device/fault_handler.h"
#include "failures/failure_injection.h"
#include "memory/other_copy.h"
#include "schedule/scheduler.h"
#include "settings/config.h"
#include "stream/capture.h"

#include <algorithm>
#include <chrono>
#include <memory>

namespace openreg {
namespace {

// Twice the capacity, because of fragmentation (see Heap). A guarded heap needs
// up to the capacity again for guards. The rest delays the reuse of freed
// addresses.
std::size_t span_of(std::size_t capacity) {
  const std::size_t page = AddressSpace::page_size();
  const std::size_t factor = config().memory_check ? 4 : 2;
  return factor * ((capacity + page - 1) / page * page);
}

Runtime* g_made = nullptr; // for a fault while runtime() makes it

std::optional<Pin> pin_for_command(int device, const Place& place) {
  Device& owner = runtime().device(device);
  auto pin = owner.memory().pin_enqueued(place.address);
  // From here on the pin prevents a reset. Checks for an earlier reset.
  if (auto failure = owner.state().failure_since(place.epoch)) {
    throw Dropped(std::move(*failure));
  }
  return pin;
}

} // namespace

Runtime::Runtime()
    : memory_(
          config().device_count,
          span_of(config().device_memory),
          span_of(config().device_memory),
          config().in_process) {
  for (int index = 0; index < config().device_count; ++index) {
    devices_.push_back(
        std::make_unique<Device>(
            index, memory_, config().device_memory, pin_for_command));
  }
}

Device& Runtime::device(int index) {
  check_device(index, device_count());
  return *devices_[static_cast<std::size_t>(index)];
}

void Runtime::drain() {
  for (const auto& device : devices_) {
    Capture::check_may_wait(device->index());
    device->check_may_wait();
  }
  const auto launches = [this] {
    std::uint64_t sum = 0;
    for (const auto& device : devices_) {
      sum += device->state().launches_of_kernels();
    }
    return sum;
  };
  std::uint64_t before = 0;
  do { // repeats for work that kernels launched on other devices
    before = launches();
    for (const auto& device : devices_) {
      device->drain();
    }
  } while (launches() != before);
}

bool Runtime::idle() {
  return std::all_of(devices_.begin(), devices_.end(), [](const auto& device) {
    return device->idle();
  });
}

void Runtime::settle(Point::Clock::time_point deadline) {
  for (const auto& device : devices_) {
    device->settle(deadline);
  }
}

void Runtime::abandon() {
  for (const auto& device : devices_) {
    device->abandon();
  }
}

Runtime& runtime() {
  // Never destroyed: workers and other libraries' exit handlers may use it.
  static Runtime* value = [] {
    const CancellationDeferred deferred;
    if (!config().allow_copies) {
      check_no_other_copy();
    }
    auto made = std::make_unique<Runtime>();
    const auto marked = process::mark_in_use([] {
      // A kernel that never returns must not keep the process.
      constexpr std::chrono::milliseconds kLimit{200};
      runtime().settle(Point::Clock::now() + kLimit);
      runtime().abandon();
    });
    if (!marked) {
      throw Failure(
          orErrorMemoryAllocation,
          "cannot register a fork handler: " + marked.text());
    }
    g_made = made.release();
    install_fault_handler(g_made->memory(), [](int index) -> Device& {
      return g_made->device(index);
    });
    schedule::start(config().schedule);
    for (const auto& failure : config().failures) {
      failure_injection::inject(failure);
    }
    return g_made;
  }();
  return *value;
}

} // namespace openreg
