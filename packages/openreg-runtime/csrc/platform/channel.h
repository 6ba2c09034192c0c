// SPDX-License-Identifier: BSD-3-Clause
// Text packets between two processes, each with or without a file.
#pragma once

#include "platform/file.h"
#include "platform/result.h"

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

namespace openreg::platform {

/// Whether devices can run in separate processes.
#if defined(_WIN32)
inline constexpr bool kHasDeviceProcesses = false;
#else
inline constexpr bool kHasDeviceProcesses = true;
#endif

struct Packet {
  std::string text;
  File file;
};

/// Owns one end of a channel: a socket, or a HANDLE.
class Channel {
 public:
  using Handle = std::intptr_t;
  static constexpr Handle kNone = -1;

  Channel() noexcept = default;
  /// Takes an end that another process made and passed on.
  explicit Channel(Handle handle) noexcept : handle_(handle) {}
  Channel(Channel&& other) noexcept
      : handle_(std::exchange(other.handle_, kNone)) {}
  Channel& operator=(Channel&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~Channel();

  /// Makes the two ends of a channel. No child inherits them.
  static Result make(Channel& first, Channel& second);

  Handle handle() const noexcept {
    return handle_;
  }
  /// Leaves the handle to the caller, who closes it.
  Handle release() noexcept {
    return std::exchange(handle_, kNone);
  }
  /// Sends a packet of at most 64 KiB, with the file or channel of a handle
  /// unless it is kNone. Sets `closed` if the other end is closed.
  Result send(const std::string& text, Handle attached, bool& closed) const;
  /// Waits for a packet; empty if the other end is closed.
  std::optional<Packet> receive() const;
  /// Ends receive() at both ends.
  void shut_down() const noexcept;

 private:
  Handle handle_ = kNone;
  mutable std::mutex sending_; // for systems that send a packet in parts
};

} // namespace openreg::platform
