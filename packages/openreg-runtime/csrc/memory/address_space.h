// SPDX-License-Identifier: BSD-3-Clause
// The device memory of this process, mapped twice.
//
// Each device owns one sparse shared-memory file. Its pages are mapped once
// without access, as the *device mapping* whose addresses are device pointers,
// and once readable and writable, as the *kernel mapping* where kernels find
// the data. All device mappings lie in one reservation and all kernel mappings
// in another of the same shape, so the distance between the two is one
// constant. Pages cost nothing until touched.
//
// Behind its own memory, each device has addresses where files of other
// processes can be mapped in the same two ways.
#pragma once

#include "platform/file.h"
#include "platform/mapping.h"

#include <cstddef>
#include <vector>

namespace openreg {

class AddressSpace {
 public:
  /// Room behind the memory in the file of a device.
  static constexpr std::size_t kRoom = std::size_t{32} << 20;

  /// Reserves, for each device, `own` bytes for its memory and `foreign` bytes
  /// for memory of other processes, both in whole pages. Maps nothing there if
  /// the devices are in other processes.
  AddressSpace(
      int device_count,
      std::size_t own,
      std::size_t foreign,
      bool in_process);
  AddressSpace(const AddressSpace&) = delete;
  AddressSpace& operator=(const AddressSpace&) = delete;
  ~AddressSpace();

  std::byte* device_mapping(int device) const noexcept {
    return device_mappings_ + static_cast<std::size_t>(device) * span_;
  }
  std::byte* end() const noexcept {
    return device_mappings_ + distance_;
  }
  /// The size of a device mapping: own memory first, then memory of other
  /// processes.
  std::size_t span() const noexcept {
    return span_;
  }
  std::size_t own_span() const noexcept {
    return own_span_;
  }
  /// The file of a device's own memory.
  const platform::File& file(int device) const noexcept {
    return files_[static_cast<std::size_t>(device)];
  }
  /// Bytes from a device pointer to its kernel pointer.
  std::ptrdiff_t distance() const noexcept {
    return distance_;
  }
  /// The device that owns a device pointer, or -1.
  int device_of(const void* pointer) const noexcept;

  /// Releases pages to the system; they read as zero afterwards. `offset` and
  /// `size` count from the start of the device mapping, in whole pages.
  void release(int device, std::size_t offset, std::size_t size) const;
  /// Opens or closes pages of a device or a kernel mapping.
  void protect(std::byte* pages, std::size_t size, bool open) const;

  /// Maps pages of another process's file at `begin`, in the range reserved for
  /// that.
  void map_foreign(
      std::byte* begin,
      std::size_t size,
      const platform::File& file,
      std::size_t offset) const;
  void unmap_foreign(std::byte* begin, std::size_t size) const;

  static std::size_t page_size() noexcept {
    return platform::page_size();
  }

 private:
  AddressSpace(std::size_t own, std::size_t foreign)
      : span_(own + foreign), own_span_(own) {}

  /// Maps a file without access at `begin` and with access in the kernel
  /// mapping.
  platform::Result map_twice(
      std::byte* begin,
      std::size_t size,
      const platform::File& file,
      std::size_t offset) const;

  std::size_t span_;
  std::size_t own_span_;
  std::byte* device_mappings_ = nullptr;
  std::ptrdiff_t distance_ = 0;
  std::vector<platform::File> files_;
};

} // namespace openreg
