// SPDX-License-Identifier: BSD-3-Clause
// The streams of a device, and its reset.
#include "device/device.h"

#include "base/error.h"
#include "device/peer.h"
#include "settings/config.h"
#include "stream/capture.h"

#include <algorithm>

namespace openreg {

Device::Device(
    int index,
    AddressSpace& memory,
    std::size_t capacity,
    PinBlock pin_block)
    : index_(index),
      state_(config().wait_timeout),
      backend_(
          config().in_process
              ? make_thread_backend(index, memory, pin_block)
              : make_process_backend(index, memory, pin_block, state_)),
      memory_(index, memory, capacity, state_, *backend_),
      default_stream_(index, 0, state_, *backend_),
      streams_{&default_stream_} {}

Stream& Device::create_stream(int priority) {
  const std::lock_guard lock(streams_mutex_);
  recycle_ended_streams();
  if (recycled_.empty()) {
    recycled_.push_back(new Stream(index_, priority, state_, *backend_));
  }
  Stream* stream = recycled_.back();
  streams_.push_back(stream);
  recycled_.pop_back();
  stream->reuse();
  stream->set_priority(priority);
  return *stream;
}

void Device::destroy_stream(Stream& stream) {
  const std::lock_guard lock(streams_mutex_);
  stream.retire();
  retired_.push_back(&stream);
  streams_.erase(std::find(streams_.begin(), streams_.end(), &stream));
}

void Device::recycle_ended_streams() {
  const auto ended =
      std::partition(retired_.begin(), retired_.end(), [](Stream* stream) {
        return !stream->retire(); // until its worker has ended
      });
  for (auto stream = ended; stream != retired_.end(); ++stream) {
    auto failure = (*stream)->failure(); // which reuse() forgets
    if (failure && !failure_of_ended_) {
      failure_of_ended_ = std::move(failure);
    }
    recycled_.push_back(*stream);
  }
  retired_.erase(ended, retired_.end());
}

std::vector<Stream*> Device::all_streams() {
  const std::lock_guard lock(streams_mutex_);
  recycle_ended_streams();
  auto streams = streams_;
  streams.insert(streams.end(), retired_.begin(), retired_.end());
  return streams;
}

void Device::check_may_wait() {
  for (const Stream* stream : all_streams()) {
    stream->check_may_wait();
  }
}

void Device::drain() {
  const Deadline deadline = state_.deadline();
  std::uint64_t launches = 0;
  do { // repeats for work that kernels have launched
    launches = state_.launches_of_kernels();
    const auto streams = all_streams();
    for (const Stream* stream : streams) {
      stream->check_may_wait(); // before the first wait, which could be for us
    }
    for (Stream* stream : streams) {
      stream->drain(deadline);
    }
  } while (state_.launches_of_kernels() != launches);
}

void Device::synchronize() {
  const auto epoch = state_.check();
  Capture::check_may_wait(index_);
  drain();
  if (MemoryPools::any_spares()) {
    memory_.trim_pools();
  }
  state_.check_since(epoch);
  if (auto failure = take_failure()) {
    throw Failure(std::move(*failure));
  }
}

std::optional<Error> Device::take_failure() {
  std::optional<Error> failure;
  for (Stream* stream : all_streams()) {
    if (failure) {
      stream->forget_failure(*failure); // if it flowed there
    } else {
      failure = stream->take_failure();
    }
  }
  const std::lock_guard lock(streams_mutex_);
  if (!failure) {
    return std::exchange(failure_of_ended_, std::nullopt);
  }
  if (failure_of_ended_ && failure_of_ended_->number == failure->number) {
    failure_of_ended_.reset();
  }
  return failure;
}

void Device::reset(EndStreams end_streams) {
  check_may_wait();
  const std::lock_guard one_at_a_time(reset_mutex_);
  state_.fail(
      {orErrorDeviceLost,
       "device " + std::to_string(index_) + " is being reset"});
  try {
    backend_->restart();
    drain(); // what is queued is dropped
    clear(end_streams);
  } catch (...) {
    state_.fail_again(
        {orErrorDeviceLost,
         "a reset of device " + std::to_string(index_) +
             " did not finish: call orDeviceReset again"});
    throw;
  }
  state_.set_wait_timeout(config().wait_timeout);
  state_.recover();
}

/// Frees everything that the idle device has.
void Device::clear(EndStreams end_streams) {
  end_streams(*this);
  end_memory_pools(memory_.with_pools(
      [](MemoryPools& pools) -> MemoryPool& { return pools.default_pool(); }));
  while (take_failure()) {
  }
  peer::reset(index_);
  memory_.clear();
}

bool Device::idle() {
  const auto streams = all_streams();
  return std::all_of(streams.begin(), streams.end(), [](const Stream* stream) {
    return stream->idle();
  });
}

void Device::settle(Point::Clock::time_point deadline) {
  for (Stream* stream : all_streams()) {
    stream->settle(deadline);
  }
}

void Device::abandon() {
  for (Stream* stream : all_streams()) {
    stream->abandon();
  }
}

} // namespace openreg
