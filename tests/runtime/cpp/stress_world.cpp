// SPDX-License-Identifier: BSD-3-Clause
// Setup, recovery and final checks of the stress test's devices.
#include "stress_world.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>

namespace stress {

void Gate::enter() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return !closed_; });
  ++inside_;
}

void Gate::leave() {
  const std::lock_guard lock(mutex_);
  --inside_;
  changed_.notify_all();
}

void Gate::close() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return !closed_; });
  closed_ = true;
  changed_.wait(lock, [this] { return inside_ == 0; });
}

void Gate::open() {
  const std::lock_guard lock(mutex_);
  closed_ = false;
  changed_.notify_all();
}

namespace {

/// Makes a call that must succeed.
void expect_success(orError_t error, const char* what) {
  if (error != orSuccess) {
    fail("%s: %s", what, orGetErrorMessage());
  }
}

} // namespace

World::World(Log& log) {
  for (int device = 0; device < kDeviceCount; ++device) {
    expect_success(STRESS_CALL(log, orSetDevice, device), "setup");
    // The default streams keep their workers.
    expect_success(orLaunchKernel(nullptr, [] {}), "setup");
    expect_success(STRESS_CALL(log, orDeviceSynchronize), "setup");
  }
  expect_success(STRESS_CALL(log, orGetResourceUsage, &before_), "setup");
  for (int device = 0; device < kOrderlyDevices; ++device) {
    prepare(log, device);
  }
}

void World::prepare(Log& log, int device) {
  expect_success(STRESS_CALL(log, orSetDevice, device), "prepare");
  if (device == kLimitedDevice) {
    expect_success(
        STRESS_CALL(log, orDeviceSetLimit, orLimitWaitTimeout, kLongTime),
        "prepare");
  }
  orStream_t stream = nullptr;
  // A device can be lost again immediately, and is then recovered again.
  if (STRESS_CALL(log, orStreamCreate, &stream) == orSuccess) {
    shared_streams[device] = stream;
  }
}

/// Consumes the failures of streams, which are reported one by one.
void World::take_failures(Log& log, int device) {
  expect_success(STRESS_CALL(log, orSetDevice, device), "recover");
  while (STRESS_CALL(log, orDeviceSynchronize) != orSuccess) {
    ++taken[device];
    // A failure through an event of a lost device is reported for the stream.
    if (sticks(STRESS_CALL(log, orStreamQuery, nullptr))) {
      return;
    }
  }
}

void World::recover(Log& log, int device) {
  log.doing("waiting to be alone");
  gate.close();
  take_failures(log, device);
  if (sticks(STRESS_CALL(log, orStreamQuery, nullptr))) {
    // Copies by other devices may be queued that use blocks of this one.
    for (int other = 0; other < kOrderlyDevices; ++other) {
      take_failures(log, other);
    }
    expect_success(STRESS_CALL(log, orSetDevice, device), "recover");
    expect_success(STRESS_CALL(log, orDeviceReset), "recover");
    ++epochs[device];
    ++resets;
    prepare(log, device);
  }
  gate.open();
}

void World::finish(Log& log) {
  for (int device = 0; device < kDeviceCount; ++device) {
    expect_success(STRESS_CALL(log, orSetDevice, device), "end");
    expect_success(
        STRESS_CALL(log, orDeviceSetLimit, orLimitWaitTimeout, 0), "end");
    expect_success(STRESS_CALL(log, orDeviceReset), "end");
    expect_success(STRESS_CALL(log, orDeviceSynchronize), "end");
  }
  // Waits until the workers of destroyed streams have ended.
  const auto deadline =
      std::chrono::steady_clock::now() + std::chrono::seconds(30);
  orResourceUsage after = OPENREG_RESOURCE_USAGE_INIT;
  do {
    std::this_thread::yield();
    expect_success(orGetResourceUsage(&after), "end");
    after.threads = std::max(after.threads, before_.threads); // some may end
  } while (std::memcmp(&after, &before_, sizeof(after)) != 0 &&
           std::chrono::steady_clock::now() < deadline);
  const std::size_t differences[] = {
      after.deviceBlocks - before_.deviceBlocks,
      after.deviceBytes - before_.deviceBytes,
      after.hostBlocks - before_.hostBlocks,
      after.hostBytes - before_.hostBytes,
      after.hostRegistrations - before_.hostRegistrations,
      after.unprotectedBlocks - before_.unprotectedBlocks,
      after.ipcMappings - before_.ipcMappings,
      after.streams - before_.streams,
      after.events - before_.events,
      after.failures - before_.failures,
      after.threads - before_.threads};
  static constexpr const char* kNames[] = {
      "device blocks",
      "device bytes",
      "pinned blocks",
      "pinned bytes",
      "registrations",
      "open blocks",
      "mappings",
      "streams",
      "events",
      "failures",
      "threads"};
  for (std::size_t i = 0; i < std::size(kNames); ++i) {
    if (differences[i] != 0) {
      fail(
          "%lld %s are left",
          static_cast<long long>(differences[i]),
          kNames[i]);
    }
  }
  if (owned.use_count() != 1) {
    fail("%ld argument blocks are left", owned.use_count() - 1);
  }
}

} // namespace stress
