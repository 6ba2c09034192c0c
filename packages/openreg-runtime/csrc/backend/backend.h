// SPDX-License-Identifier: BSD-3-Clause
// The boundary behind which a device does its work.
//
// Streams and events order commands; a lane of the backend carries those of one
// stream out. Everything that touches device bytes is a command, so a device
// that lives elsewhere (another process) is another Backend and nothing above
// it changes.
#pragma once

#include "base/device_state.h"
#include "base/error.h"
#include "memory/address_space.h"
#include "memory/block.h"

#include <openreg/activity.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <variant>

namespace openreg {

/// What a launch does, for people and profilers: orLaunchInfo, but smaller.
struct LaunchInfo {
  const char* name = nullptr; // stays valid
  std::uint64_t bytes = 0;
  std::uint8_t kind = orActivityKernel;
  std::uint8_t direction = orMemcpyHostToHost;
  std::uint8_t host_memory = orMemoryTypeUnmanaged;
};

/// A kernel with its argument block, which `cleanup` takes unless it is null.
struct Launch {
  orKernel_t kernel;
  void* args;
  orKernel_t cleanup;
  LaunchInfo info{};
};

/// Bytes for the executor of the device, whose reply `on_reply` takes.
struct Message {
  LaunchInfo info; // with a name
  const void* data;
  std::size_t size;
  orReply_t on_reply;
  void* args;
  orKernel_t cleanup;
};

/// An address for a copy. That of a device is good in this epoch only.
struct Place {
  void* address;
  DeviceState::Epoch epoch = 0;
};

/// From where to where a copy goes, noted while activity is recorded.
struct Route {
  std::uint8_t direction = orMemcpyHostToHost;
  std::uint8_t host_memory = orMemoryTypeUnmanaged;
};

/// Bytes between two addresses, each a device pointer or host memory. The
/// ranges may overlap.
struct Copy {
  Place dst;
  Place src;
  std::size_t count;
  Route route{};
};

/// Rows of `width` bytes, which begin every `pitch` bytes.
struct Copy2D {
  Place dst;
  std::size_t dst_pitch;
  Place src;
  std::size_t src_pitch;
  std::size_t width;
  std::size_t height; // at least 1
  Route route{};

  /// Bytes from the first to the last that rows touch.
  static std::size_t
  extent(std::size_t pitch, std::size_t width, std::size_t height) noexcept {
    return pitch * (height - 1) + width;
  }
};

struct Fill {
  Place dst;
  unsigned char value;
  std::size_t count;
};

/// Rows are rare and large: their own place keeps the others small.
using Command =
    std::variant<Launch, Message, Copy, std::unique_ptr<const Copy2D>, Fill>;

/// Thrown where a command is dropped because a device whose memory it uses has
/// failed or was reset: no failure of the device that executes it.
class Dropped : public Failure {
 public:
  using Failure::Failure;
};

/// When a command ran, in nanoseconds of CLOCK_MONOTONIC.
struct Span {
  std::uint64_t started = 0;
  std::uint64_t ended = 0;
};

/// Carries out the commands of one stream. One thread at a time uses it.
class Lane {
 public:
  virtual ~Lane() = default;
  /// Whether `command` may begin while others are not finished.
  virtual bool queues(const Command& command) const noexcept = 0;
  /// Begins a command, which stays where it is until it is finished. If this
  /// throws, the command failed, and is finished.
  virtual void begin(const Command& command) = 0;
  /// Waits for the oldest command that began. Throws what it failed with: what
  /// a kernel throws, orErrorIllegalAddress for bytes that are in no live
  /// block, and Dropped.
  virtual void finish() = 0;

  void execute(const Command& command) {
    begin(command);
    finish();
  }

  /// How long, in milliseconds, a device that is elsewhere may say nothing
  /// while it does what begins from now on: then it is lost. 0: for ever. In
  /// this process a kernel cannot be ended.
  std::uint64_t exchange_limit(std::uint64_t milliseconds) noexcept {
    return std::exchange(limit_, milliseconds);
  }

  /// Whether what begins from now on is to be measured where it runs.
  void measure(bool measured) noexcept {
    measured_ = measured;
  }
  /// What was measured of the last command that finished; zeros if nothing was,
  /// because it ran on the calling thread.
  Span take_span() noexcept {
    return std::exchange(span_, {});
  }

  /// The name of what runs elsewhere now, or null. Any thread may ask.
  const char* running() const noexcept {
    return running_.load(std::memory_order_relaxed);
  }

 protected:
  void set_running(const char* name) noexcept {
    running_.store(name, std::memory_order_relaxed);
  }
  std::uint64_t limit() const noexcept {
    return limit_;
  }
  bool is_measured() const noexcept {
    return measured_;
  }
  void set_span(Span span) noexcept {
    span_ = span;
  }

 private:
  std::uint64_t limit_ = 0;
  bool measured_ = false;
  Span span_;
  std::atomic<const char*> running_{nullptr};
};

class Backend {
 public:
  virtual ~Backend() = default;
  virtual std::unique_ptr<Lane> open_lane() = 0;
  /// Gives pages of the device's memory back, which read as zero afterwards.
  virtual void release(std::size_t offset, std::size_t size) = 0;
  /// Ends what runs and the memory of a device that has failed, as far as the
  /// backend can. The next command finds a new device.
  virtual void restart() = 0;
};

/// Holds the block of `device` around an address, for a command that was
/// enqueued before. Throws Dropped.
using PinBlock = std::optional<Pin> (*)(int device, const Place& place);

/// What a command fails with whose bytes are in no live block any more.
Failure no_block(const void* address, std::size_t count, int device);

/// A device in this process: commands run on the calling thread.
std::unique_ptr<Backend>
make_thread_backend(int device, const AddressSpace& memory, PinBlock pin);

/// A device in a process of its own, which starts with the first command.
/// `state` learns of its end.
std::unique_ptr<Backend> make_process_backend(
    int device,
    const AddressSpace& memory,
    PinBlock pin,
    DeviceState& state);

} // namespace openreg
