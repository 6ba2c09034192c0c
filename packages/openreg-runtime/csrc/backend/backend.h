// SPDX-License-Identifier: BSD-3-Clause
// The interface between the runtime and the implementation of a device.
//
// Streams and events order commands. A lane of the backend executes the
// commands of one stream. Every access to device memory is a command, so a
// device in another process needs only another Backend.
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

/// The description of a launch for profilers: a smaller orLaunchInfo.
struct LaunchInfo {
  const char* name = nullptr; // stays valid
  std::uint64_t bytes = 0;
  std::uint8_t kind = orActivityKernel;
  std::uint8_t direction = orMemcpyHostToHost;
  std::uint8_t host_memory = orMemoryTypeUnmanaged;
};

/// A kernel with its argument block. `cleanup`, unless null, frees the block.
struct Launch {
  orKernel_t kernel;
  void* args;
  orKernel_t cleanup;
  LaunchInfo info{};
};

/// Bytes for the device's executor. `on_reply` receives the reply.
struct Message {
  LaunchInfo info; // with a name
  const void* data;
  std::size_t size;
  orReply_t on_reply;
  void* args;
  orKernel_t cleanup;
};

/// An address for a copy. A device address is valid only in this epoch.
struct Place {
  void* address;
  DeviceState::Epoch epoch = 0;
};

/// The two sides of a copy, noted while activity is recorded.
struct Route {
  std::uint8_t direction = orMemcpyHostToHost;
  std::uint8_t host_memory = orMemoryTypeUnmanaged;
};

/// A copy between two addresses, each a device pointer or host memory. The
/// ranges may overlap.
struct Copy {
  Place dst;
  Place src;
  std::size_t count;
  Route route{};
};

/// A copy of rows of `width` bytes that begin every `pitch` bytes.
struct Copy2D {
  Place dst;
  std::size_t dst_pitch;
  Place src;
  std::size_t src_pitch;
  std::size_t width;
  std::size_t height; // at least 1
  Route route{};

  /// The number of bytes from the first to the last byte of the rows.
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

/// Copy2D is rare and large: a pointer keeps the other commands small.
using Command =
    std::variant<Launch, Message, Copy, std::unique_ptr<const Copy2D>, Fill>;

/// Thrown when a command is dropped because another device, whose memory it
/// uses, has failed or was reset. The executing device has not failed.
class Dropped : public Failure {
 public:
  using Failure::Failure;
};

/// When a command ran, in nanoseconds of CLOCK_MONOTONIC.
struct Span {
  std::uint64_t started = 0;
  std::uint64_t ended = 0;
};

/// Executes the commands of one stream. Only one thread uses it at a time.
class Lane {
 public:
  virtual ~Lane() = default;
  /// Whether `command` may begin before earlier commands have finished.
  virtual bool queues(const Command& command) const noexcept = 0;
  /// Begins a command, which must stay at its address until it has finished. If
  /// this throws, the command has failed and is finished.
  virtual void begin(const Command& command) = 0;
  /// Waits for the oldest command that began. Throws its failure: the exception
  /// of a kernel, orErrorIllegalAddress for bytes outside live blocks, or
  /// Dropped.
  virtual void finish() = 0;

  void execute(const Command& command) {
    begin(command);
    finish();
  }

  /// Sets how long, in milliseconds, a device in another process may stay
  /// silent during commands that begin from now on. Then the device is lost. 0:
  /// forever. A device in this process ignores the limit, because its kernels
  /// cannot be ended.
  std::uint64_t exchange_limit(std::uint64_t milliseconds) noexcept {
    return std::exchange(limit_, milliseconds);
  }

  /// Sets whether the device measures the commands that begin from now on.
  void measure(bool measured) noexcept {
    measured_ = measured;
  }
  /// The measured times of the last finished command. Zeros if it ran on the
  /// calling thread.
  Span take_span() noexcept {
    return std::exchange(span_, {});
  }

  /// The name of the command that the other process runs now, or null. Any
  /// thread may call it.
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
  /// Releases pages of device memory, which read as zero afterwards.
  virtual void release(std::size_t offset, std::size_t size) = 0;
  /// Ends the work and frees the memory of a failed device, as far as the
  /// backend can. The next command starts a new device.
  virtual void restart() = 0;
};

/// Pins the block of `device` around an address for an enqueued command. Throws
/// Dropped.
using PinBlock = std::optional<Pin> (*)(int device, const Place& place);

/// The failure of a command whose bytes are no longer in a live block.
Failure no_block(const void* address, std::size_t count, int device);

/// A device in this process: commands run on the calling thread.
std::unique_ptr<Backend>
make_thread_backend(int device, const AddressSpace& memory, PinBlock pin);

/// A device in a separate process, which starts with the first command. `state`
/// is notified when the process ends.
std::unique_ptr<Backend> make_process_backend(
    int device,
    const AddressSpace& memory,
    PinBlock pin,
    DeviceState& state);

} // namespace openreg
