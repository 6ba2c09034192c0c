// SPDX-License-Identifier: BSD-3-Clause
// The device part of the C API.
#include "config.h"
#include "error.h"
#include "process.h"
#include "runtime.h"

#include <algorithm>
#include <cstring>
#include <thread>

namespace openreg {
namespace {

thread_local int t_current_device = 0;

} // namespace

int current_device() noexcept {
  return t_current_device;
}

} // namespace openreg

using openreg::api_call;
using openreg::check_not_null;

extern "C" {

orError_t orGetDeviceCount(int* count) noexcept {
  return api_call("orGetDeviceCount", [&] {
    check_not_null(count, "count");
    *count = openreg::config().device_count;
  });
}

orError_t orGetDevice(int* device) noexcept {
  return api_call("orGetDevice", [&] {
    check_not_null(device, "device");
    *device = openreg::t_current_device;
  });
}

orError_t orSetDevice(int device) noexcept {
  return api_call("orSetDevice", [&] {
    openreg::check_device(device, openreg::config().device_count);
    openreg::t_current_device = device;
  });
}

orError_t orGetDeviceProperties(orDeviceProp* prop, int device) noexcept {
  return api_call("orGetDeviceProperties", [&] {
    check_not_null(prop, "prop");
    openreg::check_device(device, openreg::config().device_count);
    *prop = {};
    std::strncpy(
        prop->name, "OpenReg simulated device", sizeof(prop->name) - 1);
    prop->totalGlobalMem = openreg::config().device_memory;
    prop->multiProcessorCount =
        static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
    prop->major = 0;
    prop->minor = 1;
  });
}

orError_t orDeviceSynchronize() noexcept {
  return api_call("orDeviceSynchronize", [&] {
    auto error =
        openreg::runtime().device(openreg::current_device()).synchronize();
    if (error) {
      throw openreg::Failure(std::move(*error));
    }
  });
}

orError_t orInit() noexcept {
  return api_call("orInit", [&] { openreg::runtime(); });
}

orError_t orIsInitialized(int* initialized) noexcept {
  return api_call("orIsInitialized", [&] {
    check_not_null(initialized, "initialized");
    *initialized = openreg::process::in_use() ? 1 : 0;
  });
}

orError_t orIsInBadFork(int* badFork) noexcept {
  // Answers in such a child, where every api_call() fails.
  if (badFork == nullptr) {
    return openreg::set_last_error(
        "orIsInBadFork", {orErrorInvalidValue, "badFork must not be null"});
  }
  *badFork = openreg::process::in_bad_fork() ? 1 : 0;
  return orSuccess;
}

} // extern "C"
