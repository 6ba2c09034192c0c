// SPDX-License-Identifier: BSD-3-Clause
// State shared by the threads of the stress test.
#pragma once

#include "stress_log.h"

#include <array>
#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <random>

namespace stress {

// Devices 0 to 2 are used correctly: data that no failure hits must be right.
// On the last one, threads use all handles without synchronization.
constexpr int kDeviceCount = 4;
constexpr int kOrderlyDevices = 3;
constexpr int kWildDevice = 3;
// Waits on this device have a limit, so waiting threads do not run commands.
constexpr int kLimitedDevice = 1;
constexpr std::size_t kLongTime = 300'000; // milliseconds: never reached

using Random = std::mt19937_64;

inline std::uint64_t below(Random& random, std::uint64_t end) {
  return random() % end;
}
inline bool chance(Random& random, double probability) {
  return static_cast<double>(random() >> 11) * 0x1p-53 < probability;
}

inline bool sticks(orError_t error) {
  return error == orErrorDeviceLost || error == orErrorIllegalAddress ||
      error == orErrorAssert;
}

/// A lock for many shared owners or one exclusive owner, which has priority.
class Gate {
 public:
  void enter();
  void leave();
  void close();
  void open();

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int inside_ = 0;
  bool closed_ = false;
};

class World {
 public:
  /// Sets up the devices, and records the resources of the process.
  explicit World(Log& log);

  /// Resets an orderly device that has failed, while no other thread uses one.
  void recover(Log& log, int device);
  /// Resets all devices and checks that nothing is left.
  void finish(Log& log);

  Gate gate;
  std::atomic<bool> stop{false};
  std::atomic<std::uint64_t> resets{0};
  // Incremented when a reset has destroyed a device's blocks and streams.
  std::array<std::atomic<std::uint64_t>, kOrderlyDevices> epochs{};
  // Incremented when orDeviceSynchronize has consumed a stream's failure.
  std::array<std::atomic<std::uint64_t>, kOrderlyDevices> taken{};
  // A stream of each device that all threads use.
  std::array<std::atomic<orStream_t>, kOrderlyDevices> shared_streams{};
  // Shared by kernels; only the world owns it at the end.
  std::shared_ptr<int> owned = std::make_shared<int>(0);

 private:
  void prepare(Log& log, int device);
  void take_failures(Log& log, int device);

  orResourceUsage before_ = OPENREG_RESOURCE_USAGE_INIT;
};

/// Uses the orderly devices and checks the data.
void work_orderly(World& world, Log& log, std::uint64_t seed);
/// Uses the wild device, and resets it.
void work_wildly(World& world, Log& log, std::uint64_t seed);
/// Destroys the remaining objects after its threads have ended.
void end_wild_work(Log& log);
/// Injects failures and loses devices.
void make_trouble(World& world, Log& log, std::uint64_t seed);

} // namespace stress
