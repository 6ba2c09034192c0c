// SPDX-License-Identifier: BSD-3-Clause
// The part of the C API that shares memory and events with other processes.
#include "base/error.h"
#include "base/process.h"
#include "base/system_thread.h"
#include "device/memory_ranges.h"
#include "device/runtime.h"
#include "ipc/handle.h"
#include "ipc/memory.h"
#include "stream/capture.h"
#include "stream/event.h"

#include <string>
#include <utility>

using namespace openreg;

extern "C" {

orError_t orIpcGetMemHandle(orIpcMemHandle_t* handle, void* devPtr) noexcept {
  return api_call("orIpcGetMemHandle", [&] {
    const CancellationDeferred deferred;
    check_not_null(handle, "handle");
    check_range("devPtr", devPtr, 0);
    auto& device = runtime().device(device_of(devPtr));
    device.state().check();
    *handle = device.memory().share(devPtr);
  });
}

orError_t orIpcOpenMemHandle(
    void** devPtr,
    orIpcMemHandle_t handle,
    unsigned int flags) noexcept {
  return api_call("orIpcOpenMemHandle", [&] {
    const CancellationDeferred deferred;
    check_not_null(devPtr, "devPtr");
    *devPtr = nullptr;
    if (flags != 0 && flags != orIpcMemLazyEnablePeerAccess) {
      throw Failure(
          orErrorInvalidValue,
          "flags " + std::to_string(flags) +
              " are not 0 or orIpcMemLazyEnablePeerAccess");
    }
    runtime();
    auto offer = ipc::find_offer(handle);
    auto& device = runtime().device(static_cast<int>(offer.note.device));
    device.state().check();
    *devPtr = device.memory().open_shared(std::move(offer));
  });
}

orError_t orIpcCloseMemHandle(void* devPtr) noexcept {
  return api_call("orIpcCloseMemHandle", [&] {
    const CancellationDeferred deferred;
    const int index = device_of(devPtr);
    if (index < 0) {
      throw Failure(
          orErrorInvalidValue,
          "devPtr " + hex(devPtr) + " is not a device pointer");
    }
    auto& device = runtime().device(index);
    if (device.memory().close_shared(devPtr, /*last=*/false)) {
      return;
    }
    if (!process::exiting()) {
      Capture::check_may_wait(device.index());
      device.drain();
    }
    device.memory().close_shared(devPtr, /*last=*/true);
  });
}

orError_t orIpcGetEventHandle(
    orIpcEventHandle_t* handle,
    orEvent_t event) noexcept {
  return api_call("orIpcGetEventHandle", [&] {
    const CancellationDeferred deferred;
    check_not_null(handle, "handle");
    *handle = event_of(event).handle();
  });
}

orError_t orIpcOpenEventHandle(
    orEvent_t* event,
    orIpcEventHandle_t handle) noexcept {
  return api_call("orIpcOpenEventHandle", [&] {
    const CancellationDeferred deferred;
    check_not_null(event, "event");
    *event = nullptr;
    runtime();
    const auto opened = ipc::read_handle(handle.reserved, ipc::Kind::kEvent);
    *event = open_event(ipc::open_file(opened));
  });
}

} // extern "C"
