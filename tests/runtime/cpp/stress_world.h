// SPDX-License-Identifier: BSD-3-Clause
// What the threads of the stress test share.
#pragma once

#include "stress_log.h"

#include <array>
#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <random>

namespace stress {

// Devices 0 to 2 are used with care: what no failure hits must come out right.
// On the last one each thread does what it likes with all handles.
constexpr int kDeviceCount = 4;
constexpr int kOrderlyDevices = 3;
constexpr int kWildDevice = 3;
// On this one waits have a limit, so that no waiting thread helps.
constexpr int kLimitedDevice = 1;
constexpr std::size_t kLongTime = 300'000; // milliseconds: never over

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

/// Lets many threads in, or one that wants to be alone, which goes first.
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
  /// Makes the devices ready; notes what the process holds.
  explicit World(Log& log);

  /// Resets an orderly device that has failed, while no other thread uses one.
  void recover(Log& log, int device);
  /// Makes all devices as new and checks that nothing is left.
  void finish(Log& log);

  Gate gate;
  std::atomic<bool> stop{false};
  std::atomic<std::uint64_t> resets{0};
  // Changes when the blocks and streams of a device have ended.
  std::array<std::atomic<std::uint64_t>, kOrderlyDevices> epochs{};
  // Changes when orDeviceSynchronize took a failure from some stream.
  std::array<std::atomic<std::uint64_t>, kOrderlyDevices> taken{};
  // A stream of each device that all threads use.
  std::array<std::atomic<orStream_t>, kOrderlyDevices> shared_streams{};
  // Shared by kernels; at the end only the world owns it.
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
/// Destroys what that leaves, once its threads have ended.
void end_wild_work(Log& log);
/// Injects failures and loses devices.
void make_trouble(World& world, Log& log, std::uint64_t seed);

} // namespace stress
