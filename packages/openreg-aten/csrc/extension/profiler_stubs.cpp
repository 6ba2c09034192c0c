// SPDX-License-Identifier: BSD-3-Clause
// PyTorch's older profiler calls these stubs around each operator. They record
// events on the current stream, whose distance is the device time.
#include "base/keys.h"
#include "base/mechanism.h"
#include "device/device.h"
#include "device/error.h"
#include "device/gil.h"
#include "extension/profiler_ranges.h"
#include "stream/stream.h"

#include <c10/util/ApproximateClock.h>
#include <torch/csrc/profiler/stubs/base.h>

#include <exception>
#include <functional>
#include <memory>

namespace openreg::aten {
namespace {

using Event = torch::profiler::impl::ProfilerVoidEventStub;

class Stubs final : public torch::profiler::impl::ProfilerStubs {
 public:
  void record(c10::DeviceIndex* device, Event* event, int64_t* host_time)
      const override {
    const c10::DeviceIndex current = current_device();
    if (device != nullptr) {
      *device = current;
    }
    orEvent_t made = nullptr;
    OPENREG_CHECK(orEventCreateWithFlags(&made, orEventEnableTiming));
    *event = Event(made, [](void* ended) {
      const orError_t error = orEventDestroy(static_cast<orEvent_t>(ended));
      // A forked child silently drops the events it inherited.
      if (error != orSuccess && error != orErrorInitialization) {
        warn_runtime_error(error);
      }
    });
    if (host_time != nullptr) {
      *host_time = c10::getTime();
    }
    OPENREG_CHECK(orEventRecord(made, current_handle(current)));
  }

  /// Returns microseconds. The profiler reads the times possibly long after a
  /// kernel failed. As for CUDA, a failure causes a warning and the value -1,
  /// which the profiler ignores.
  float elapsed(const Event* start, const Event* end) const override {
    const auto first = static_cast<orEvent_t>(start->get());
    const auto last = static_cast<orEvent_t>(end->get());
    try {
      const GilRelease released;
      float milliseconds = 0;
      OPENREG_CHECK(orEventSynchronize(first));
      OPENREG_CHECK(orEventSynchronize(last));
      OPENREG_CHECK(orEventElapsedTime(&milliseconds, first, last));
      return milliseconds * 1000;
    } catch (const std::exception& error) {
      TORCH_WARN(
          "Failed to measure time between two events of the device. ",
          error.what());
      return -1;
    }
  }

  void mark(const char* name) const override {
    mark_range(name);
  }
  void rangePush(const char* name) const override {
    push_range(name);
  }
  void rangePop() const override {
    pop_range();
  }

  void onEachDevice(std::function<void(int)> work) const override {
    for (c10::DeviceIndex index = 0; index < device_count(); ++index) {
      const CurrentDevice current(index);
      work(index);
    }
  }
  void synchronize() const override {
    const GilRelease released;
    synchronize_device(current_device());
  }
  bool enabled() const override {
    return true;
  }
};

} // namespace

OPENREG_MECHANISM(
    profiler_stubs,
    "torch::profiler::impl::registerPrivateUse1Methods",
    "torch.autograd.profiler reports no device times") {
  namespace profiler = torch::profiler::impl;
  if (kIsCuda) {
    profiler::registerCUDAMethods(new Stubs);
  } else {
    profiler::registerPrivateUse1Methods(new Stubs);
  }
}

} // namespace openreg::aten
