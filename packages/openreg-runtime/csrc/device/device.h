// SPDX-License-Identifier: BSD-3-Clause
// A device: its memory, its streams and its reset.
#pragma once

#include "backend/backend.h"
#include "base/device_state.h"
#include "device/device_memory.h"
#include "stream/stream.h"

#include <memory>
#include <mutex>
#include <optional>
#include <vector>

namespace openreg {

class Device {
 public:
  /// Ends the handles of all streams of a device except its default stream.
  using EndStreams = void (*)(Device& device);

  /// `pin_block` pins memory of any device for a command.
  Device(
      int index,
      AddressSpace& memory,
      std::size_t capacity,
      PinBlock pin_block);

  int index() const noexcept {
    return index_;
  }
  Stream& default_stream() noexcept {
    return default_stream_;
  }
  DeviceState& state() noexcept {
    return state_;
  }
  DeviceMemory& memory() noexcept {
    return memory_;
  }

  Stream& create_stream(int priority);
  void destroy_stream(Stream& stream);
  /// Throws orErrorNotPermitted in a command of one of its streams.
  void check_may_wait();
  /// Waits for all streams; does not clear their failures. Throws
  /// orErrorTimeout.
  void drain();
  /// Waits for all streams. Throws and clears one failure.
  void synchronize();
  /// Resets the device.
  void reset(EndStreams end_streams);
  /// Whether no stream has work.
  bool idle();
  /// Waits until no command runs, at most until `deadline`.
  void settle(Point::Clock::time_point deadline);
  /// Drops queued commands at exit.
  void abandon();

 private:
  /// The streams that may have work.
  std::vector<Stream*> all_streams();
  void clear(EndStreams end_streams);
  void recycle_ended_streams();
  std::optional<Error> take_failure();

  const int index_;
  DeviceState state_;
  std::unique_ptr<Backend> backend_;
  DeviceMemory memory_;
  std::mutex reset_mutex_; // one at a time

  Stream default_stream_;
  std::mutex streams_mutex_;
  // Streams are never deleted, because a stale handle may name them.
  std::vector<Stream*> streams_;          // live ones, the default one first
  std::vector<Stream*> retired_;          // ended, but with work or a worker
  std::vector<Stream*> recycled_;         // retired and idle
  std::optional<Error> failure_of_ended_; // the first that such a stream left
};

} // namespace openreg
