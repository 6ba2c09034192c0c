// SPDX-License-Identifier: BSD-3-Clause
// The work that an orderly thread enqueues.
#include "stress_orderly.h"

#include <memory>
#include <utility>

namespace stress::orderly {

void Worker::fill(Lane& lane) {
  Buffer& buffer = lane.buffers[0];
  const int value = static_cast<int>(below(random_, 256));
  if (ok(lane, CALL(orMemsetAsync, buffer.data, value, bytes(), lane.stream))) {
    buffer.content = {static_cast<std::uint32_t>(value) * 0x01010101u, 0};
  }
}

void Worker::fill_and_wait(Lane& lane) {
  Buffer& buffer = lane.buffers[0];
  const int value = static_cast<int>(below(random_, 256));
  // Uses the default stream, which is not ordered with the lane's.
  if (wait(lane) && ok(lane, CALL(orMemset, buffer.data, value, bytes()))) {
    buffer.content = {static_cast<std::uint32_t>(value) * 0x01010101u, 0};
  }
}

void Worker::upload(Lane& lane) {
  Buffer& buffer = lane.buffers[below(random_, 2)];
  const Numbers numbers = new_numbers();
  numbers.write(host_.data(), words_);
  if (ok(lane,
         CALL(
             orMemcpyAsync,
             buffer.data,
             host_.data(),
             bytes(),
             orMemcpyHostToDevice,
             lane.stream))) {
    buffer.content = numbers;
  }
}

void Worker::upload_pinned(Lane& lane) {
  if (lane.in_is_read) {
    wait(lane);
  }
  if (lane.in_is_read) {
    return;
  }
  Buffer& buffer = lane.buffers[below(random_, 2)];
  const Numbers numbers = new_numbers();
  numbers.write(lane.in, words_);
  lane.in_is_read = true;
  if (ok(lane,
         CALL(
             orMemcpyAsync,
             buffer.data,
             lane.in,
             bytes(),
             orMemcpyDefault,
             lane.stream))) {
    buffer.content = numbers;
  }
}

void Worker::upload_registered(Lane& lane) {
  if (!ok(lane, CALL(orHostRegister, host_.data(), bytes(), 0))) {
    return;
  }
  upload(lane);
  wait(lane);
  // Waits for the wild device too, which may have a limit.
  while (CALL(orHostUnregister, host_.data()) == orErrorTimeout) {
  }
}

void Worker::add(Lane& lane) {
  Buffer& buffer = lane.buffers[below(random_, 2)];
  void* pointer = nullptr;
  if (!ok(lane, CALL(orGetKernelPointer, &pointer, buffer.data))) {
    return;
  }
  const auto value = static_cast<std::uint32_t>(random_());
  const auto kernel = [data = static_cast<std::uint32_t*>(pointer),
                       count = words_,
                       value,
                       owned = world_.owned] {
    for (std::size_t i = 0; i < count; ++i) {
      data[i] += value;
    }
  };
  if (ok(lane, CALL(orLaunchKernel, lane.stream, kernel)) && buffer.content) {
    buffer.content->first += value;
  }
}

void Worker::add_and_wait(Lane& lane) {
  struct Arguments {
    std::uint32_t* data;
    std::size_t count;
  };
  Buffer& buffer = lane.buffers[0];
  void* pointer = nullptr;
  if (!ok(lane, CALL(orGetKernelPointer, &pointer, buffer.data))) {
    return;
  }
  Arguments arguments{static_cast<std::uint32_t*>(pointer), words_};
  const orKernel_t kernel = [](void* p) {
    const auto& [data, count] = *static_cast<Arguments*>(p);
    for (std::size_t i = 0; i < count; ++i) {
      data[i] += 1;
    }
  };
  if (ok(lane, CALL(orLaunchKernelBlocking, lane.stream, kernel, &arguments)) &&
      buffer.content) {
    buffer.content->first += 1;
  }
}

void Worker::copy(Lane& lane) {
  Buffer& to = lane.buffers[1];
  const Buffer& from = lane.buffers[0];
  if (ok(lane,
         CALL(
             orMemcpyAsync,
             to.data,
             from.data,
             bytes(),
             orMemcpyDeviceToDevice,
             lane.stream))) {
    to.content = from.content;
  }
}

/// Copies to the other lane, and orders both around the copy.
void Worker::copy_to_other(Lane& lane) {
  Lane& to = other(lane);
  if (!ready(to) || !ok(lane, CALL(orEventRecord, lane.event, lane.stream)) ||
      !ok(to, CALL(orStreamWaitEvent, to.stream, lane.event, 0))) {
    return;
  }
  const bool copied =
      ok(to,
         CALL(
             orMemcpyPeerAsync,
             to.buffers[0].data,
             to.device,
             lane.buffers[0].data,
             lane.device,
             bytes(),
             to.stream));
  // The copy must not see later work of this lane.
  if (!ok(to, CALL(orEventRecord, to.event, to.stream)) ||
      !ok(lane, CALL(orStreamWaitEvent, lane.stream, to.event, 0))) {
    spoil(to);
    return;
  }
  if (copied) {
    to.buffers[0].content = lane.buffers[0].content;
  }
}

void Worker::call_host(Lane& lane) {
  const orHostFn_t count = [](void* p) {
    ++*static_cast<std::atomic<std::uint64_t>*>(p);
  };
  if (ok(lane,
         CALL(
             orLaunchHostFunc,
             lane.stream,
             count,
             &lane.host_calls_run,
             nullptr))) {
    ++lane.host_calls;
  }
}

/// Blocks the stream of a lane while work is enqueued.
void Worker::hold(Lane& lane) {
  auto released = std::make_shared<std::atomic<bool>>(false);
  if (!ok(lane, CALL(orLaunchKernel, lane.stream, [released] {
            released->wait(false);
          }))) {
    return;
  }
  for (std::uint64_t i = below(random_, 20); i > 0; --i) {
    chance(random_, 0.5) ? add(lane) : fill(lane);
  }
  ok(lane, CALL(orStreamQuery, lane.stream), {orErrorNotReady});
  released->store(true);
  released->notify_all();
}

void Worker::use_events(Lane& lane) {
  orEvent_t start = nullptr;
  if (!ok(lane, CALL(orEventCreateWithFlags, &start, orEventEnableTiming))) {
    return;
  }
  float time = 0;
  ok(lane, CALL(orEventRecord, start, lane.stream));
  add(lane);
  if (ok(lane, CALL(orEventRecord, lane.event, lane.stream)) &&
      ok(lane, CALL(orEventQuery, lane.event), {orErrorNotReady}) &&
      ok(lane, CALL(orEventSynchronize, lane.event)) &&
      ok(lane, CALL(orEventElapsedTime, &time, start, lane.event)) &&
      time < 0) {
    fail("the time between two events is %g ms", static_cast<double>(time));
  }
  ok(lane, CALL(orEventDestroy, start));
}

/// Launches on a stream shared with other threads.
void Worker::use_shared_stream(Lane& lane) {
  const orStream_t stream = world_.shared_streams[lane.device];
  if (stream == nullptr) {
    return;
  }
  for (int i = 0; i < 5; ++i) {
    ok(lane, CALL(orLaunchKernel, stream, [owned = world_.owned] {}));
  }
  if (ok(lane, CALL(orEventRecord, lane.event, stream))) {
    ok(lane, CALL(orStreamWaitEvent, lane.stream, lane.event, 0));
  }
  if (chance(random_, 0.3)) {
    ok(lane, CALL(orStreamSynchronize, stream));
  }
}

void Worker::replace_buffer(Lane& lane) {
  Buffer& buffer = lane.buffers[below(random_, 2)];
  wait(lane);
  wait(other(lane)); // the other lane may still copy the block
  const auto free = chance(random_, 0.5) ? orFree : orFreeUnused;
  const char* name = free == orFree ? "orFree" : "orFreeUnused";
  if (ok(lane, log_.run(name, [&] { return free(buffer.data); }))) {
    buffer = {};
  }
}

/// Destroys the stream with pending work and continues in another one.
void Worker::replace_stream(Lane& lane) {
  const orStream_t old = lane.stream;
  if (!ok(lane, CALL(orEventRecord, lane.event, old)) ||
      !ok(lane, CALL(orStreamDestroy, old))) {
    return;
  }
  spoil(lane); // failures of the old stream are no longer reported
  lane.stream = nullptr;
  if (!ok(lane, CALL(orStreamCreate, &lane.stream)) ||
      !ok(lane, CALL(orStreamWaitEvent, lane.stream, lane.event, 0))) {
    ok(lane, CALL(orEventSynchronize, lane.event));
  }
}

void Worker::change_peer_access(Lane& lane) {
  const int peer = (lane.device + 1) % kOrderlyDevices;
  int possible = 0;
  if (ok(lane, CALL(orDeviceCanAccessPeer, &possible, lane.device, peer)) &&
      possible != 1) {
    fail("devices %d and %d cannot access each other", lane.device, peer);
  }
  if (chance(random_, 0.5)) {
    ok(lane,
       CALL(orDeviceEnablePeerAccess, peer, 0),
       {orErrorPeerAccessAlreadyEnabled});
  } else {
    ok(lane,
       CALL(orDeviceDisablePeerAccess, peer),
       {orErrorPeerAccessNotEnabled});
  }
}

} // namespace stress::orderly
