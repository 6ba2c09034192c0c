// SPDX-License-Identifier: BSD-3-Clause
// The device part of the C API.
#include "base/device_number.h"
#include "base/error.h"
#include "base/struct_size.h"
#include "device/runtime.h"
#include "device/stream_handles.h"
#include "settings/config.h"
#include "settings/registered.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <thread>

using namespace openreg;

namespace {

[[noreturn]] void reject_limit(orLimit limit) {
  throw Failure(
      orErrorInvalidValue,
      "limit " + std::to_string(static_cast<int>(limit)) +
          " is not an orLimit: expected 0 or 1");
}

/// The name and the compute capability that devices report. Programs for CUDA
/// choose code paths by the capability.
struct Model {
  const char* name;
  int major;
  int minor;
};

Model model() {
  return registered_settings::is_cuda()
      ? Model{"OpenReg simulated device (cuda)", 8, 0}
      : Model{"OpenReg simulated device", 0, 1};
}

int processor_count() {
  return static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
}

} // namespace

extern "C" {

orError_t orGetDeviceCount(int* count) noexcept {
  return api_call("orGetDeviceCount", [&] {
    check_not_null(count, "count");
    *count = config().device_count;
  });
}

orError_t orGetDevice(int* device) noexcept {
  return api_call("orGetDevice", [&] {
    check_not_null(device, "device");
    *device = current_device();
  });
}

orError_t orSetDevice(int device) noexcept {
  return api_call("orSetDevice", [&] {
    check_device(device, config().device_count);
    exchange_current_device(device);
  });
}

orError_t orGetDeviceProperties(orDeviceProp* prop, int device) noexcept {
  return api_call("orGetDeviceProperties", [&] {
    check_struct_size(prop, "prop");
    check_device(device, config().device_count);
    orDeviceProp value = OPENREG_DEVICE_PROP_INIT;
    const Model reported = model();
    std::strncpy(value.name, reported.name, sizeof(value.name) - 1);
    value.totalGlobalMem = config().device_memory;
    value.multiProcessorCount = processor_count();
    value.major = reported.major;
    value.minor = reported.minor;
    write_struct(prop, "prop", value);
  });
}

orError_t
orDeviceGetAttribute(int* value, orDeviceAttr attr, int device) noexcept {
  return api_call("orDeviceGetAttribute", [&] {
    check_not_null(value, "value");
    check_device(device, config().device_count);
    switch (attr) {
      case orDevAttrMultiProcessorCount:
        *value = processor_count();
        return;
      case orDevAttrComputeCapabilityMajor:
        *value = model().major;
        return;
      case orDevAttrComputeCapabilityMinor:
        *value = model().minor;
        return;
      case orDevAttrMemoryAlignment:
        *value = static_cast<int>(Heap::kAlignment);
        return;
      case orDevAttrConcurrentKernels:
      case orDevAttrUnifiedAddressing:
      case orDevAttrHostRegisterSupported:
        *value = 1;
        return;
      case orDevAttrResetCount:
        *value = static_cast<int>(runtime().device(device).state().resets());
        return;
      case orDevAttrIpcSupported:
      case orDevAttrKernelPointers:
        *value = config().in_process ? 1 : 0;
        return;
      case orDevAttrStreamPrioritiesSupported:
      case orDevAttrPageableMemoryAccess:
        *value = 0;
        return;
    }
    throw Failure(
        orErrorInvalidValue,
        "attr " + std::to_string(static_cast<int>(attr)) +
            " is not an orDeviceAttr: expected 0 to 11");
  });
}

orError_t orDeviceSynchronize() noexcept {
  return api_call("orDeviceSynchronize", [&] {
    runtime().device(current_device()).synchronize();
  });
}

orError_t orDeviceReset() noexcept {
  return api_call("orDeviceReset", [&] {
    runtime().device(current_device()).reset(destroy_streams);
  });
}

orError_t orDeviceLose(int device) noexcept {
  return api_call("orDeviceLose", [&] {
    runtime().device(device).state().fail(
        {orErrorDeviceLost,
         "device " + std::to_string(device) + " was lost (orDeviceLose)"});
  });
}

orError_t orDeviceAssertFail(int device, const char* message) noexcept {
  return api_call("orDeviceAssertFail", [&] {
    check_not_null(message, "message");
    runtime().device(device).state().fail({orErrorAssert, message});
  });
}

orError_t orDeviceSetLimit(orLimit limit, size_t value) noexcept {
  return api_call("orDeviceSetLimit", [&] {
    auto& device = runtime().device(current_device());
    const auto check_at_most = [value](std::size_t most, const char* unit) {
      if (value > most) {
        throw Failure(
            orErrorInvalidValue,
            "value " + std::to_string(value) + " is too large: expected 0 to " +
                std::to_string(most) + " " + unit);
      }
    };
    switch (limit) {
      case orLimitMemory:
        check_at_most(config().device_memory, "bytes");
        device.memory().set_capacity(value);
        return;
      case orLimitWaitTimeout:
        check_at_most(kMaxWaitTimeout, "milliseconds");
        device.state().set_wait_timeout(value);
        return;
    }
    reject_limit(limit);
  });
}

orError_t orDeviceGetLimit(size_t* value, orLimit limit) noexcept {
  return api_call("orDeviceGetLimit", [&] {
    check_not_null(value, "value");
    auto& device = runtime().device(current_device());
    switch (limit) {
      case orLimitMemory:
        *value = device.memory().usage().capacity;
        return;
      case orLimitWaitTimeout:
        *value = device.state().wait_timeout();
        return;
    }
    reject_limit(limit);
  });
}

} // extern "C"
