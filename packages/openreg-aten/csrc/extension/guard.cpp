// SPDX-License-Identifier: BSD-3-Clause
// The device guard: switches devices and streams for PyTorch, and implements
// torch.Stream and torch.Event.
#include "base/keys.h"
#include "base/mechanism.h"
#include "device/device.h"
#include "device/error.h"
#include "device/host_wait.h"
#include "device/trace.h"
#include "memory/allocator.h"
#include "stream/capture.h"
#include "stream/stream.h"

#include <c10/core/DeviceCapability.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

namespace openreg::aten {
namespace {

using Trace = c10::impl::PyInterpreterVTable;

class Guard final : public c10::impl::DeviceGuardImplInterface {
 public:
  c10::DeviceType type() const override {
    return kDeviceType;
  }

  // ---- devices
  c10::Device exchangeDevice(c10::Device device) const override {
    return {type(), exchange_device(device.index())};
  }
  c10::Device getDevice() const override {
    return {type(), current_device()};
  }
  void setDevice(c10::Device device) const override {
    set_device(device.index());
  }
  void uncheckedSetDevice(c10::Device device) const noexcept override {
    const orError_t error = orSetDevice(device.index());
    if (error != orSuccess) {
      warn_runtime_error(error);
    }
  }
  c10::DeviceIndex deviceCount() const noexcept override {
    return device_count();
  }
  void synchronizeDevice(const c10::DeviceIndex index) const override {
    synchronize_device(index);
  }
  c10::DeviceCapability getDeviceCapability(c10::Device device) const override {
    check_device(device.index());
    return {}; // all dtypes that the CPU supports
  }

  // ---- streams
  c10::Stream getStream(c10::Device device) const override {
    return current_stream(device.index());
  }
  c10::Stream getDefaultStream(c10::Device device) const override {
    return default_stream(device.index());
  }
  c10::Stream getStreamFromGlobalPool(c10::Device device, bool high_priority)
      const override {
    return traced(stream_from_pool(device.index(), high_priority ? -1 : 0));
  }
  c10::Stream getNewStream(c10::Device device, int priority) const override {
    return traced(stream_from_pool(device.index(), priority));
  }
  c10::Stream exchangeStream(c10::Stream stream) const override {
    return exchange_stream(stream);
  }
  void* getStreamNativeHandle(const c10::Stream stream) const override {
    return handle_of(stream);
  }
  bool queryStream(const c10::Stream& stream) const override {
    if (!ready(orStreamQuery(handle_of(stream)))) {
      return false;
    }
    trace_reached(handle_of(stream));
    return true;
  }
  bool isStreamCapturing(const c10::Stream& stream) const override {
    return capture_of(handle_of(stream)) != nullptr;
  }
  void synchronizeStream(const c10::Stream& stream) const override {
    trace(
        &Trace::trace_gpu_stream_synchronization, trace_id(handle_of(stream)));
    note_host_wait();
    OPENREG_CHECK(orStreamSynchronize(handle_of(stream)));
  }

  // ---- events
  void record(
      void** event,
      const c10::Stream& stream,
      const c10::DeviceIndex index,
      const c10::EventFlag flag) const override {
    TORCH_CHECK(
        index == -1 || index == stream.device_index(),
        "event of device ",
        c10::Device(kDeviceType, index),
        " cannot be recorded on a stream of device ",
        stream.device());
    auto handle = static_cast<orEvent_t>(*event);
    if (handle == nullptr) {
      OPENREG_CHECK(orEventCreateWithFlags(
          &handle,
          flag == c10::EventFlag::BACKEND_DEFAULT ? orEventEnableTiming
                                                  : orEventDisableTiming));
      *event = handle;
      trace(&Trace::trace_gpu_event_creation, trace_id(handle));
    }
    trace(
        &Trace::trace_gpu_event_record,
        trace_id(handle),
        trace_id(handle_of(stream)));
    OPENREG_CHECK(orEventRecord(handle, handle_of(stream)));
  }
  void block(void* event, const c10::Stream& stream) const override {
    if (event != nullptr) {
      trace(
          &Trace::trace_gpu_event_wait,
          trace_id(event),
          trace_id(handle_of(stream)));
      OPENREG_CHECK(orStreamWaitEvent(
          handle_of(stream), static_cast<orEvent_t>(event), 0));
    }
  }
  bool queryEvent(void* event) const override {
    if (event == nullptr) {
      return true;
    }
    if (!ready(orEventQuery(static_cast<orEvent_t>(event)))) {
      return false;
    }
    trace(&Trace::trace_gpu_event_wait, trace_id(event), kTracedHost);
    return true;
  }
  void synchronizeEvent(void* event) const override {
    if (event != nullptr) {
      trace(&Trace::trace_gpu_event_synchronization, trace_id(event));
      note_host_wait();
      OPENREG_CHECK(orEventSynchronize(static_cast<orEvent_t>(event)));
    }
  }
  double elapsedTime(void* start, void* end, const c10::DeviceIndex)
      const override {
    TORCH_CHECK(
        start != nullptr && end != nullptr,
        "Both events must be recorded before calculating elapsed time.");
    float milliseconds = 0;
    const orError_t error = orEventElapsedTime(
        &milliseconds,
        static_cast<orEvent_t>(start),
        static_cast<orEvent_t>(end));
    TORCH_CHECK(
        error != orErrorNotReady,
        "Both events must be completed before calculating elapsed time.");
    OPENREG_CHECK(error);
    return milliseconds;
  }
  void destroyEvent(void* event, const c10::DeviceIndex)
      const noexcept override {
    if (event == nullptr) {
      return;
    }
    trace(&Trace::trace_gpu_event_deletion, trace_id(event));
    const orError_t error = orEventDestroy(static_cast<orEvent_t>(event));
    // A forked child silently drops the objects it inherited.
    if (error != orSuccess && error != orErrorInitialization) {
      warn_runtime_error(error);
    }
  }
  void recordDataPtrOnStream(
      const c10::DataPtr& data,
      const c10::Stream& stream) const override {
    device_allocator().recordStream(data, stream);
  }

 private:
  static c10::Stream traced(c10::Stream stream) {
    trace(&Trace::trace_gpu_stream_creation, trace_id(handle_of(stream)));
    return stream;
  }
  /// PyTorch does not trace queries. A successful query is traced as an event
  /// at the end of the stream that the host found complete.
  static void trace_reached(orStream_t stream) {
    const uintptr_t id = trace_id(stream);
    trace(&Trace::trace_gpu_event_creation, id);
    trace(&Trace::trace_gpu_event_record, id, id);
    trace(&Trace::trace_gpu_event_wait, id, kTracedHost);
    trace(&Trace::trace_gpu_event_deletion, id);
  }
  static bool ready(orError_t error) {
    if (error == orErrorNotReady) {
      return false;
    }
    OPENREG_CHECK(error);
    return true;
  }
};

} // namespace

OPENREG_MECHANISM(
    guard,
    "c10::impl::DeviceGuardImplInterface",
    "no streams, events, current device or backward") {
  c10::impl::DeviceGuardImplRegistrar(kDeviceType, new Guard);
}

} // namespace openreg::aten
