// SPDX-License-Identifier: BSD-3-Clause
// The main loop of an orderly thread: failures, waits, checks.
#include "stress_orderly.h"

#include <algorithm>
#include <utility>

namespace stress {
namespace orderly {

/// True if a call has succeeded. Handles failures; other codes must be
/// accepted.
bool Worker::ok(
    Lane& lane,
    orError_t error,
    std::initializer_list<orError_t> accepted) {
  if (error == orSuccess) {
    return true;
  }
  // The work behind a failure was dropped. A sticky one may have come with an
  // event of another device.
  if (sticks(error) || error == orErrorLaunchFailure) {
    spoil(lane);
    lane.dropped = true;
  }
  if (sticks(error)) {
    lost_ = lane.device;
  } else if (
      error != orErrorLaunchFailure && error != orErrorMemoryAllocation &&
      std::find(accepted.begin(), accepted.end(), error) == accepted.end()) {
    fail("not expected: %s %s", orGetErrorName(error), orGetErrorMessage());
  }
  return false;
}

/// Marks the data of a lane, and of the streams that copied it, as unknown.
void Worker::spoil(Lane& lane) {
  for (Buffer& buffer : lane.buffers) {
    buffer.content.reset();
  }
}

/// Creates the lane's stream and blocks; false if a failure prevents it.
bool Worker::ready(Lane& lane) {
  if (!ok(lane, CALL(orSetDevice, lane.device))) {
    return false;
  }
  learn(lane);
  const std::uint64_t epoch = world_.epochs[lane.device];
  if (lane.epoch != epoch) {
    spoil(lane);
    lane.epoch = epoch;
    lane.stream = nullptr;
    lane.in_is_read = false;
    lane.host_calls = lane.host_calls_run;
    lane.dropped = false;
    for (Buffer& buffer : lane.buffers) {
      buffer.data = nullptr;
    }
  }
  if (lane.stream == nullptr &&
      !ok(lane,
          CALL(
              orStreamCreateWithPriority,
              &lane.stream,
              orStreamNonBlocking,
              -static_cast<int>(below(random_, 4))))) {
    return false;
  }
  for (Buffer& buffer : lane.buffers) {
    if (buffer.data == nullptr &&
        !ok(lane, CALL(orMalloc, &buffer.data, bytes()))) {
      return false;
    }
  }
  void* pinned = lane.in;
  if (pinned == nullptr && ok(lane, CALL(orMallocHost, &pinned, bytes()))) {
    lane.in = static_cast<std::uint32_t*>(pinned);
  }
  return lane.in != nullptr &&
      (lane.event != nullptr || ok(lane, CALL(orEventCreate, &lane.event)));
}

/// True if a recovery of the device, which runs alone, has consumed a failure
/// that may be the lane's.
bool Worker::learn(Lane& lane) {
  const std::uint64_t taken = world_.taken[lane.device];
  if (std::exchange(lane.taken, taken) == taken) {
    return false;
  }
  spoil(lane);
  lane.dropped = true;
  return true;
}

/// Waits for the work of a lane. If that succeeds, no failure has hit it.
bool Worker::wait(Lane& lane) {
  if (lane.epoch != world_.epochs[lane.device]) {
    spoil(lane); // the reset destroyed its stream
    return false;
  }
  const orError_t error = CALL(orStreamSynchronize, lane.stream);
  const bool done = ok(lane, error);
  if (!done) {
    spoil(lane);
  }
  if (sticks(error)) {
    return false;
  }
  lane.in_is_read = false;
  const bool taken = learn(lane);
  if (std::exchange(lane.dropped, false)) {
    lane.host_calls = lane.host_calls_run;
  }
  if (lane.host_calls != lane.host_calls_run) {
    fail(
        "%llu host functions were enqueued and %llu have run",
        static_cast<unsigned long long>(lane.host_calls),
        static_cast<unsigned long long>(lane.host_calls_run.load()));
  }
  return done && !taken;
}

/// Checks the invariants that always hold.
void Worker::ask(Lane& lane) {
  char* inside = static_cast<char*>(lane.buffers[0].data) + bytes() / 2;
  orPointerAttributes attributes = OPENREG_POINTER_ATTRIBUTES_INIT;
  if (ok(lane, CALL(orPointerGetAttributes, &attributes, inside)) &&
      (attributes.device != lane.device ||
       attributes.pointer != lane.buffers[0].data ||
       attributes.size != bytes())) {
    fail("the attributes of a block are wrong");
  }
  int device = -1;
  if (ok(lane, CALL(orStreamGetDevice, lane.stream, &device)) &&
      device != lane.device) {
    fail("a stream of device %d says %d", lane.device, device);
  }
  int priority = 1;
  ok(lane, CALL(orStreamGetPriority, lane.stream, &priority));
  std::size_t free = 0;
  std::size_t total = 0;
  if (ok(lane, CALL(orMemGetInfo, &free, &total)) && free > total) {
    fail("%zu of %zu bytes are free", free, total);
  }
  if (ok(lane, CALL(orMemoryUnprotect, inside))) {
    ok(lane, CALL(orMemoryProtect, inside));
  }
  orResourceUsage usage = OPENREG_RESOURCE_USAGE_INIT;
  ok(lane, CALL(orGetResourceUsage, &usage));
}

/// Compares a buffer with its expected content.
void Worker::check(Lane& lane) {
  const Buffer& buffer = lane.buffers[below(random_, 2)];
  std::fill(host_.begin(), host_.end(), 0);
  bool read = false;
  if (chance(random_, 0.5)) {
    read = wait(lane) &&
        ok(lane,
           CALL(
               orMemcpy,
               host_.data(),
               buffer.data,
               bytes(),
               orMemcpyDeviceToHost));
  } else {
    read = ok(lane,
              CALL(
                  orMemcpyAsync,
                  host_.data(),
                  buffer.data,
                  bytes(),
                  orMemcpyDeviceToHost,
                  lane.stream)) &&
        wait(lane);
  }
  if (!read || !buffer.content) {
    return;
  }
  for (std::size_t i = 0; i < words_; ++i) {
    if (host_[i] != buffer.content->at(i)) {
      fail(
          "number %zu of a block of device %d is %u instead of %u",
          i,
          lane.device,
          host_[i],
          buffer.content->at(i));
      return;
    }
  }
}

void Worker::step() {
  using Action = void (Worker::*)(Lane&);
  static constexpr Action kActions[] = {
      &Worker::fill,
      &Worker::fill_and_wait,
      &Worker::upload,
      &Worker::upload_pinned,
      &Worker::add,
      &Worker::add,
      &Worker::add,
      &Worker::add_and_wait,
      &Worker::copy,
      &Worker::copy_to_other,
      &Worker::copy_to_other,
      &Worker::call_host,
      &Worker::hold,
      &Worker::use_events,
      &Worker::ask,
      &Worker::use_shared_stream,
      &Worker::check,
      &Worker::check,
      &Worker::check};
  static constexpr Action kRareActions[] = {
      &Worker::upload_registered,
      &Worker::replace_buffer,
      &Worker::replace_stream,
      &Worker::change_peer_access};
  Lane& lane = lanes_[below(random_, 2)];
  if (ready(lane)) {
    const Action action = chance(random_, 0.05)
        ? kRareActions[below(random_, std::size(kRareActions))]
        : kActions[below(random_, std::size(kActions))];
    (this->*action)(lane);
  }
}

void Worker::end() {
  for (Lane& lane : lanes_) {
    if (lane.event != nullptr) {
      ok(lane, CALL(orEventDestroy, lane.event));
    }
    // Waits for the wild device too, which may have a limit.
    while (CALL(orFreeHost, lane.in) == orErrorTimeout) {
    }
  }
}

void Worker::run() {
  while (!world_.stop) {
    log_.doing("waiting to be let in");
    world_.gate.enter();
    step();
    world_.gate.leave();
    if (lost_ >= 0) {
      world_.recover(log_, std::exchange(lost_, -1));
    }
  }
  world_.gate.enter();
  end();
  world_.gate.leave();
}

} // namespace orderly

void work_orderly(World& world, Log& log, std::uint64_t seed) {
  orderly::Worker(world, log, seed).run();
}

} // namespace stress
