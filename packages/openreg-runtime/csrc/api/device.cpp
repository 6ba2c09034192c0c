// SPDX-License-Identifier: BSD-3-Clause
// The device part of the C API.
#include "base/device_number.h"
#include "base/error.h"
#include "base/struct_size.h"
#include "device/model.h"
#include "device/runtime.h"
#include "device/stream_handles.h"
#include "settings/config.h"

#include <cstring>
#include <string>

using namespace openreg;

namespace {

[[noreturn]] void reject_limit(orLimit limit) {
  throw Failure(
      orErrorInvalidValue,
      "limit " + std::to_string(static_cast<int>(limit)) +
          " is not an orLimit: expected 0 or 1");
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
    reported.name.copy(value.name, sizeof(value.name) - 1);
    value.totalGlobalMem = config().device_memory;
    value.multiProcessorCount = reported.processors;
    value.major = reported.major;
    value.minor = reported.minor;
    write_struct(prop, "prop", value);
  });
}

orError_t orSetDeviceModel(const orDeviceProp* prop) noexcept {
  return api_call("orSetDeviceModel", [&] {
    const orDeviceProp wanted = read_struct(prop, "prop");
    const std::size_t length = strnlen(wanted.name, sizeof(wanted.name));
    if (length == 0 || length == sizeof(wanted.name)) {
      throw Failure(
          orErrorInvalidValue,
          "prop.name is not valid: expected 1 to " +
              std::to_string(sizeof(wanted.name) - 1) + " characters");
    }
    if (wanted.multiProcessorCount < 1 || wanted.major < 0 ||
        wanted.minor < 0) {
      throw Failure(
          orErrorInvalidValue,
          "prop has multiProcessorCount " +
              std::to_string(wanted.multiProcessorCount) + ", major " +
              std::to_string(wanted.major) + " and minor " +
              std::to_string(wanted.minor) + ": expected at least 1, 0 and 0");
    }
    set_model(
        {{wanted.name, length},
         wanted.major,
         wanted.minor,
         wanted.multiProcessorCount});
  });
}

orError_t
orDeviceGetAttribute(int* value, orDeviceAttr attr, int device) noexcept {
  return api_call("orDeviceGetAttribute", [&] {
    check_not_null(value, "value");
    check_device(device, config().device_count);
    switch (attr) {
      case orDevAttrMultiProcessorCount:
        *value = model().processors;
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
