// SPDX-License-Identifier: BSD-3-Clause
// The backend of devices that live in this process.
#include "backend/backend.h"
#include "backend/executor.h"
#include "base/error.h"
#include "memory/address_space.h"

#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace openreg {
namespace {

class ThreadLane final : public Lane {
 public:
  ThreadLane(const AddressSpace& memory, PinBlock pin)
      : memory_(memory), pin_(pin) {}

  bool queues(const Command& /*command*/) const noexcept override {
    return false; // it is finished when it began
  }
  void begin(const Command& command) override {
    std::visit([this](const auto& value) { run(value); }, command);
  }
  void finish() override {}

 private:
  void run(const Launch& launch) {
    launch.kernel(launch.args);
  }
  void run(const Message& message) {
    executor().execute(
        message.data, message.size, message.on_reply, message.args);
  }
  void run(const Copy& copy) {
    const Range dst = reach(copy.dst, copy.count);
    const Range src = reach(copy.src, copy.count);
    std::memmove(dst.address, src.address, copy.count);
  }
  void run(const std::unique_ptr<const Copy2D>& rows) {
    const Copy2D& copy = *rows;
    const auto extent = [&copy](std::size_t pitch) {
      return Copy2D::extent(pitch, copy.width, copy.height);
    };
    const Range dst = reach(copy.dst, extent(copy.dst_pitch));
    const Range src = reach(copy.src, extent(copy.src_pitch));
    for (std::size_t row = 0; row < copy.height; ++row) {
      std::memmove(
          dst.address + row * copy.dst_pitch,
          src.address + row * copy.src_pitch,
          copy.width);
    }
  }
  void run(const Fill& fill) {
    const Range dst = reach(fill.dst, fill.count);
    std::memset(dst.address, fill.value, fill.count);
  }

  struct Range {
    std::byte* address;
    std::optional<Pin> pin; // none for host memory
  };

  /// The address at which this process can access `place`. The enqueuing call
  /// has checked the range, but the block may have been freed since then. The
  /// pin keeps it alive from now on.
  Range reach(const Place& place, std::size_t count) const {
    auto* address = static_cast<std::byte*>(place.address);
    const int device = memory_.device_of(address);
    if (device < 0) {
      return {address, std::nullopt};
    }
    auto pin = pin_(device, place);
    if (!pin || address + count > pin->block().begin + pin->block().size) {
      throw no_block(address, count, device);
    }
    return {address + memory_.distance(), std::move(pin)};
  }

  const AddressSpace& memory_;
  const PinBlock pin_;
};

class ThreadBackend final : public Backend {
 public:
  ThreadBackend(int device, const AddressSpace& memory, PinBlock pin)
      : device_(device), memory_(memory), pin_(pin) {}

  std::unique_ptr<Lane> open_lane() override {
    return std::make_unique<ThreadLane>(memory_, pin_);
  }
  void release(std::size_t offset, std::size_t size) override {
    memory_.release(device_, offset, size);
  }
  void restart() override {} // nobody can end a thread

 private:
  const int device_;
  const AddressSpace& memory_;
  const PinBlock pin_;
};

} // namespace

Failure no_block(const void* address, std::size_t count, int device) {
  return {
      orErrorIllegalAddress,
      "a copy or set of " + std::to_string(count) + " bytes reached " +
          hex(address) + " of device " + std::to_string(device) +
          ", where no block is allocated any more"};
}

std::unique_ptr<Backend>
make_thread_backend(int device, const AddressSpace& memory, PinBlock pin) {
  return std::make_unique<ThreadBackend>(device, memory, pin);
}

} // namespace openreg
