// SPDX-License-Identifier: BSD-3-Clause
// The devices of this process.
#pragma once

#include "address_space.h"
#include "backend.h"
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
    std::size_t capacity;
  };
  Usage usage() const;

  Stream& create_stream(int priority);
  void destroy_stream(Stream& stream);
  /// Waits for all streams; leaves their failures where they are.
  void drain();
  /// Waits for all streams; returns and forgets one failure.
  std::optional<Error> synchronize();
  /// Waits until no command runs, at most until `deadline`.
  void settle(Point::Clock::time_point deadline);

 private:
  std::vector<Stream*> all_streams();

  const int index_;
  AddressSpace& memory_;
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
