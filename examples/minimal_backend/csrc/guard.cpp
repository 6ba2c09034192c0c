// SPDX-License-Identifier: BSD-3-Clause
// Current device and stream, torch.Stream and torch.Event.
#include <c10/core/DeviceCapability.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

#include "runtime.h"

namespace torch_minimal {
namespace {

bool is_ready(orError_t error) {
  if (error != orErrorNotReady) check(error);
  return error == orSuccess;
}

struct Guard final : c10::impl::DeviceGuardImplInterface {
  c10::DeviceType type() const override { return c10::kPrivateUse1; }
  c10::Device exchangeDevice(c10::Device device) const override {
    return {type(), exchange_device(device.index())};
  }
  c10::Device getDevice() const override { return {type(), current_device()}; }
  void setDevice(c10::Device device) const override { exchange_device(device.index()); }
  void uncheckedSetDevice(c10::Device device) const noexcept override {
    const orError_t error = orSetDevice(device.index());
    if (error != orSuccess) warn(error);
  }
  c10::DeviceIndex deviceCount() const noexcept override { return device_count(); }
  c10::DeviceCapability getDeviceCapability(c10::Device) const override { return {}; }
  void synchronizeDevice(const c10::DeviceIndex index) const override {
    const c10::DeviceIndex before = exchange_device(index);
    const orError_t error = orDeviceSynchronize();
    exchange_device(before);
    check(error);
  }

  c10::Stream getStream(c10::Device device) const override {
    return current_stream(device.index());
  }
  c10::Stream getDefaultStream(c10::Device device) const override {
    return c10::Stream(c10::Stream::DEFAULT, current_stream(device.index()).device());
  }
  // Streams are never destroyed. A pool would reuse them.
  c10::Stream getNewStream(c10::Device device, int priority) const override {
    const c10::DeviceIndex before = exchange_device(device.index());
    orStream_t handle = nullptr;
    const orError_t error = orStreamCreateWithPriority(&handle, orStreamDefault, priority);
    const c10::Device where = getDevice();
    exchange_device(before);
    check(error);
    return c10::Stream(c10::Stream::UNSAFE, where, reinterpret_cast<c10::StreamId>(handle));
  }
  c10::Stream getStreamFromGlobalPool(c10::Device device, bool high_priority) const override {
    return getNewStream(device, high_priority ? -1 : 0);
  }
  c10::Stream exchangeStream(c10::Stream stream) const override { return exchange_stream(stream); }
  void* getStreamNativeHandle(const c10::Stream stream) const override { return handle_of(stream); }
  bool queryStream(const c10::Stream& stream) const override {
    return is_ready(orStreamQuery(handle_of(stream)));
  }
  void synchronizeStream(const c10::Stream& stream) const override {
    check(orStreamSynchronize(handle_of(stream)));
  }

  // PyTorch stores an event as a pointer, which is null until the first record().
  void record(void** event, const c10::Stream& stream, const c10::DeviceIndex,
              const c10::EventFlag flag) const override {
    if (*event == nullptr) {
      const bool timed = flag == c10::EventFlag::BACKEND_DEFAULT;
      orEvent_t made = nullptr; // belongs to the current device
      const c10::DeviceIndex before = exchange_device(stream.device_index());
      const orError_t error =
          orEventCreateWithFlags(&made, timed ? orEventEnableTiming : orEventDisableTiming);
      exchange_device(before);
      check(error);
      *event = made;
    }
    check(orEventRecord(static_cast<orEvent_t>(*event), handle_of(stream)));
  }
  void block(void* event, const c10::Stream& stream) const override {
    if (event) check(orStreamWaitEvent(handle_of(stream), static_cast<orEvent_t>(event), 0));
  }
  bool queryEvent(void* event) const override {
    return !event || is_ready(orEventQuery(static_cast<orEvent_t>(event)));
  }
  void synchronizeEvent(void* event) const override {
    if (event) check(orEventSynchronize(static_cast<orEvent_t>(event)));
  }
  double elapsedTime(void* start, void* end, const c10::DeviceIndex) const override {
    TORCH_CHECK(start && end, "both events must be recorded before elapsed_time()");
    float milliseconds = 0;
    check(orEventElapsedTime(&milliseconds, static_cast<orEvent_t>(start),
                             static_cast<orEvent_t>(end)));
    return milliseconds;
  }
  void destroyEvent(void* event, const c10::DeviceIndex) const noexcept override {
    if (!event || in_bad_fork()) return;
    const orError_t error = orEventDestroy(static_cast<orEvent_t>(event));
    if (error != orSuccess) warn(error);
  }
};

C10_REGISTER_GUARD_IMPL(PrivateUse1, Guard)

} // namespace
} // namespace torch_minimal
