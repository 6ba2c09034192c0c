// SPDX-License-Identifier: BSD-3-Clause
// The devices of this process.
#pragma once

#include "address_space.h"
#include "backend.h"
#include "device_state.h"
#include "heap.h"
#include "stream.h"

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace openreg {

class Device {
 public:
  Device(int index, AddressSpace& memory, std::size_t capacity);

  int index() const noexcept {
    return index_;
  }
  Stream& default_stream() noexcept {
    return default_stream_;
  }
  DeviceState& state() noexcept {
    return state_;
  }

  /// A device pointer. Throws orErrorMemoryAllocation.
  void* allocate(std::size_t size);
  /// Frees a block without waiting for work. Throws orErrorInvalidValue.
  void free(void* pointer);
  struct Block {
    std::byte* begin;
    std::size_t size;
  };
  /// The live block around a pointer of this device: start and size in bytes.
  std::optional<Block> find(const void* pointer) const;
  struct Usage {
    std::size_t used;
    std::size_t requested;
    std::size_t blocks;
    std::size_t capacity;
  };
  Usage usage() const;
  /// Limits what can be allocated, up to the memory of the device.
  void set_capacity(std::size_t capacity);

  Stream& create_stream(int priority);
  void destroy_stream(Stream& stream);
  /// Throws orErrorNotPermitted in a command of one of its streams.
  void check_may_wait();
  /// Waits for all streams; leaves their failures where they are. Throws
  /// orErrorTimeout.
  void drain();
  /// Waits for all streams. Throws, and forgets, one failure.
  void synchronize();
  /// Makes the device as new.
  void reset();
  /// Waits until no command runs, at most until `deadline`.
  void settle(Point::Clock::time_point deadline);

 private:
  std::vector<Stream*> all_streams();

  const int index_;
  AddressSpace& memory_;
  DeviceState state_;
  std::unique_ptr<Backend> backend_;

  mutable std::mutex heap_mutex_;
  Heap heap_;

  Stream default_stream_;
  std::mutex streams_mutex_;
  std::vector<Stream*> streams_;  // the default one first; never deleted
  std::vector<Stream*> recycled_; // retired ones among them
};

class Runtime {
 public:
  Runtime();

  int device_count() const noexcept {
    return static_cast<int>(devices_.size());
  }
  /// Throws orErrorInvalidDevice.
  Device& device(int index);
  AddressSpace& memory() noexcept {
    return memory_;
  }
  /// Waits for all work of all devices, as Device::drain() does.
  void drain();
  /// Waits until no command runs, at most until `deadline`.
  void settle(Point::Clock::time_point deadline);

 private:
  AddressSpace memory_;
  std::vector<std::unique_ptr<Device>> devices_;
};

/// The devices, made at the first call. Throws Failure.
Runtime& runtime();

/// The device that is current for this thread.
int current_device() noexcept;

/// Throws orErrorInvalidDevice unless 0 <= index < count.
void check_device(int index, int count);

} // namespace openreg
