// SPDX-License-Identifier: BSD-3-Clause
// The boundary behind which a device does its work.
//
// Streams and events order commands; a backend carries one out. Everything that
// touches device bytes is a command, so a device that lives elsewhere (another
// process) is another Backend and nothing above it changes.
#pragma once

#include "base/device_state.h"
#include "base/error.h"
#include "memory/address_space.h"
#include "memory/block.h"

#include <cstddef>
#include <memory>
#include <optional>
#include <variant>

namespace openreg {

/// A kernel with its argument block, which `cleanup` takes unless it is null.
struct Launch {
  orKernel_t kernel;
  void* args;
  orKernel_t cleanup;
};

/// An address for a copy. That of a device is good in this epoch only.
struct Place {
  void* address;
  DeviceState::Epoch epoch = 0;
};

/// Bytes between two addresses, each a device pointer or host memory. The
/// ranges may overlap.
struct Copy {
  Place dst;
  Place src;
  std::size_t count;
};

/// Rows of `width` bytes, which begin every `pitch` bytes.
struct Copy2D {
  Place dst;
  std::size_t dst_pitch;
  Place src;
  std::size_t src_pitch;
  std::size_t width;
  std::size_t height; // at least 1

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
using Command = std::variant<Launch, Copy, std::unique_ptr<const Copy2D>, Fill>;

/// Thrown where a command is dropped because a device whose memory it uses has
/// failed or was reset: no failure of the device that executes it.
class Dropped : public Failure {
 public:
  using Failure::Failure;
};

class Backend {
 public:
  virtual ~Backend() = default;
  /// Carries `command` out on the calling thread. Throws what a kernel throws,
  /// orErrorIllegalAddress for bytes that are in no live block, and Dropped.
  virtual void execute(const Command& command) = 0;
};

/// Holds the block of `device` around an address, for a command that was
/// enqueued before. Throws Dropped.
using PinBlock = std::optional<Pin> (*)(int device, const Place& place);

/// A device in this process: commands run on the calling thread.
std::unique_ptr<Backend> make_thread_backend(
    const AddressSpace& memory,
    PinBlock pin);

} // namespace openreg
