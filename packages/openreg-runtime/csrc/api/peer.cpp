// SPDX-License-Identifier: BSD-3-Clause
// The part of the C API that grants peer access.
#include "device/peer.h"

#include "base/device_number.h"
#include "base/error.h"
#include "device/runtime.h"
#include "settings/config.h"

#include <string>

using namespace openreg;

namespace {

void check_possible(int device, int owner) {
  if (owner == device) {
    throw Failure(
        orErrorInvalidDevice,
        "peerDevice " + std::to_string(owner) +
            " is the current device: expected another device");
  }
  if (!config().peer_access) {
    throw Failure(
        orErrorNotSupported,
        "device " + std::to_string(device) +
            " cannot access the memory of device " + std::to_string(owner) +
            " (OPENREG_PEER_ACCESS is 0)");
  }
}

} // namespace

extern "C" {

orError_t
orDeviceCanAccessPeer(int* canAccess, int device, int peerDevice) noexcept {
  return api_call("orDeviceCanAccessPeer", [&] {
    check_not_null(canAccess, "canAccess");
    check_device(device, config().device_count);
    check_device(peerDevice, config().device_count);
    *canAccess = config().peer_access && device != peerDevice ? 1 : 0;
  });
}

orError_t orDeviceEnablePeerAccess(
    int peerDevice,
    unsigned int flags) noexcept {
  return api_call("orDeviceEnablePeerAccess", [&] {
    check_no_flags(flags);
    auto& device = runtime().device(current_device());
    check_device(peerDevice, config().device_count);
    check_possible(device.index(), peerDevice);
    device.state().check();
    runtime().device(peerDevice).state().check();
    peer::enable(device.index(), peerDevice);
  });
}

orError_t orDeviceDisablePeerAccess(int peerDevice) noexcept {
  return api_call("orDeviceDisablePeerAccess", [&] {
    check_device(peerDevice, config().device_count);
    peer::disable(current_device(), peerDevice);
  });
}

} // extern "C"
