// SPDX-License-Identifier: BSD-3-Clause
// The table of peer access.
#include "device/peer.h"

#include "base/error.h"
#include "settings/config.h"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

namespace openreg::peer {
namespace {

/// For each device, a bit for each device whose memory its kernels may access.
/// enable(), disable() and check_access() use a single word and need no lock;
/// reset() changes one word after the other.
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

} // namespace

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
