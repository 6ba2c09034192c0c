// SPDX-License-Identifier: BSD-3-Clause
// A message of a socket that has room for a descriptor.
#pragma once

#include <array>
#include <cstddef>
#include <cstring>
#include <sys/socket.h>
#include <sys/uio.h>

namespace openreg::platform {

class DescriptorMessage {
 public:
  DescriptorMessage(void* data, std::size_t size) noexcept
      : bytes_{data, size} {
    header_.msg_iov = &bytes_;
    header_.msg_iovlen = 1;
  }
  DescriptorMessage(const DescriptorMessage&) = delete;
  DescriptorMessage& operator=(const DescriptorMessage&) = delete;

  /// The message to send, with `descriptor` unless it is -1.
  const msghdr* with(int descriptor) noexcept {
    if (descriptor >= 0) {
      add_room();
      cmsghdr* rights = CMSG_FIRSTHDR(&header_);
      rights->cmsg_level = SOL_SOCKET;
      rights->cmsg_type = SCM_RIGHTS;
      rights->cmsg_len = CMSG_LEN(sizeof(int));
      std::memcpy(CMSG_DATA(rights), &descriptor, sizeof(int));
    }
    return &header_;
  }
  /// The message to receive.
  msghdr* empty() noexcept {
    add_room();
    return &header_;
  }
  /// The descriptor that arrived, or -1.
  int descriptor() noexcept {
    int found = -1;
    const cmsghdr* rights = CMSG_FIRSTHDR(&header_);
    if (rights != nullptr && rights->cmsg_type == SCM_RIGHTS &&
        rights->cmsg_len == CMSG_LEN(sizeof(int))) {
      std::memcpy(&found, CMSG_DATA(rights), sizeof(int));
    }
    return found;
  }

 private:
  void add_room() noexcept {
    header_.msg_control = control_.data();
    header_.msg_controllen = control_.size();
  }

  iovec bytes_;
  msghdr header_{};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control_{};
};

} // namespace openreg::platform
