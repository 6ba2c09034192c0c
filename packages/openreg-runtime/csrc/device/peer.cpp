// SPDX-License-Identifier: BSD-3-Clause
// Peer access and its part of the C API.
#include "device/peer.h"

#include "base/error.h"
#include "device/device.h"
#include "settings/config.h"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

namespace openreg::peer {
namespace {

/// For each device, a bit for each device whose memory its kernels may reach.
/// One word holds all that a call looks at or changes, so none needs a lock.
using Peers = std::atomic<std::uint64_t>;
std::array<Peers, kMaxDevices> g_peers{};
static_assert(kMaxDevices <= 64);

Peers& peers_of(int device) {
  return g_peers[static_cast<std::size_t>(device)];
}

std::uint64_t bit(int device) {
  return std::uint64_t{1} << device;
}

std::string not_enabled(int device, int owner) {
  return "device " + std::to_string(device) +
      " has no access to the memory of device " + std::to_string(owner) +
      ": orDeviceEnablePeerAccess(" + std::to_string(owner) +
      ", 0) was not called with device " + std::to_string(device) + " current";
}

void check_possible(int device, int owner) {
  if (owner == device) {
    throw Failure(
        orErrorInvalidDevice,
        "peerDevice " + std::to_string(owner) +
            " is the current device, which is no peer of itself");
  }
  if (!config().peer_access) {
    throw Failure(
        orErrorNotSupported,
        "device " + std::to_string(device) +
            " can not access the memory of device " + std::to_string(owner) +
            " (OPENREG_PEER_ACCESS is 0)");
  }
}

void enable(int device, int owner) {
  if ((peers_of(device).fetch_or(bit(owner)) & bit(owner)) != 0) {
    throw Failure(
        orErrorPeerAccessAlreadyEnabled,
        "device " + std::to_string(device) +
            " has access to the memory of device " + std::to_string(owner) +
            " already");
  }
}

void disable(int device, int owner) {
  if ((peers_of(device).fetch_and(~bit(owner)) & bit(owner)) == 0) {
    throw Failure(orErrorPeerAccessNotEnabled, not_enabled(device, owner));
  }
}

} // namespace

void check_access(int device, int owner) {
  if (owner != device && (peers_of(device).load() & bit(owner)) == 0) {
    throw Failure(orErrorPeerAccessNotEnabled, not_enabled(device, owner));
  }
}

void reset(int device) {
  for (Peers& peers : g_peers) {
    peers.fetch_and(~bit(device));
  }
  peers_of(device).store(0);
}

} // namespace openreg::peer

using openreg::api_call;
using openreg::check_device;
using openreg::check_not_null;
using openreg::config;
using openreg::current_device;

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
    openreg::check_no_flags(flags);
    auto& device = openreg::runtime().device(current_device());
    check_device(peerDevice, config().device_count);
    openreg::peer::check_possible(device.index(), peerDevice);
    device.state().check();
    openreg::runtime().device(peerDevice).state().check();
    openreg::peer::enable(device.index(), peerDevice);
  });
}

orError_t orDeviceDisablePeerAccess(int peerDevice) noexcept {
  return api_call("orDeviceDisablePeerAccess", [&] {
    check_device(peerDevice, config().device_count);
    openreg::peer::disable(current_device(), peerDevice);
  });
}

} // extern "C"
