// SPDX-License-Identifier: BSD-3-Clause
// An unnamed file of memory for the processes of one user.
#pragma once

#include "platform/process.h"

#include <cstddef>
#include <cstdint>
#include <utility>

namespace openreg::distributed {

class SharedFile {
 public:
  SharedFile() noexcept = default;
  SharedFile(SharedFile&& other) noexcept
      : handle_(std::exchange(other.handle_, kNone)),
        number_(other.number_),
        owner_(other.owner_) {}
  SharedFile& operator=(SharedFile&& other) noexcept {
    std::swap(handle_, other.handle_);
    std::swap(number_, other.number_);
    std::swap(owner_, other.owner_);
    return *this;
  }
  ~SharedFile() {
    close();
  }

  /// Creates a file of `size` zeros. Pages take no memory until they are used.
  /// Without a file if the system refuses.
  static SharedFile create(size_t size);
  /// Opens the file of another process by its number. Without a file if it
  /// cannot be opened or has another size.
  static SharedFile open(int process, int64_t number, size_t size);

  explicit operator bool() const noexcept {
    return handle_ != kNone;
  }
  /// Other processes can open the file with this number until close().
  int64_t number() const noexcept {
    return number_;
  }
  /// Maps the file, but not in children that are forked later. Null if the
  /// system refuses. The mapping outlives the file.
  std::byte* map(size_t size) const;
  static void unmap(std::byte* begin, size_t size) noexcept;
  void close() noexcept;

 private:
  static constexpr intptr_t kNone = -1;

  SharedFile(intptr_t handle, int64_t number) noexcept
      : handle_(handle), number_(number), owner_(process_number()) {}

  intptr_t handle_ = kNone;
  int64_t number_ = -1;
  int owner_ = -1; // the process that has created or opened it
};

} // namespace openreg::distributed
