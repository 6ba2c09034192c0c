// SPDX-License-Identifier: BSD-3-Clause
// Messages with SCM_RIGHTS.
#include "platform/posix/passing.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/uio.h>

namespace openreg::platform {
namespace {

#if defined(MSG_NOSIGNAL)
constexpr int kSendFlags = MSG_NOSIGNAL;
#else
constexpr int kSendFlags = 0; // the socket has an option
#endif

using Control = std::array<char, CMSG_SPACE(sizeof(int))>;

} // namespace

void prepare_socket(int socket) noexcept {
  fcntl(socket, F_SETFD, FD_CLOEXEC);
#if defined(SO_NOSIGPIPE)
  const int on = 1;
  setsockopt(socket, SOL_SOCKET, SO_NOSIGPIPE, &on, sizeof(on));
#endif
}

bool send_all(
    int socket,
    const void* data,
    std::size_t size,
    int descriptor) noexcept {
  auto* next = const_cast<char*>(static_cast<const char*>(data));
  while (size > 0) {
    iovec bytes{next, size};
    msghdr message{};
    message.msg_iov = &bytes;
    message.msg_iovlen = 1;
    alignas(cmsghdr) Control control{};
    if (descriptor >= 0) {
      message.msg_control = control.data();
      message.msg_controllen = control.size();
      cmsghdr* header = CMSG_FIRSTHDR(&message);
      header->cmsg_level = SOL_SOCKET;
      header->cmsg_type = SCM_RIGHTS;
      header->cmsg_len = CMSG_LEN(sizeof(int));
      std::memcpy(CMSG_DATA(header), &descriptor, sizeof(int));
    }
    const ssize_t sent = sendmsg(socket, &message, kSendFlags);
    if (sent < 0) {
      if (errno == EINTR) {
        continue;
      }
      return false;
    }
    descriptor = -1; // it went with the first byte
    next += sent;
    size -= static_cast<std::size_t>(sent);
  }
  return true;
}

bool receive_all(
    int socket,
    void* data,
    std::size_t size,
    int& descriptor) noexcept {
  auto* next = static_cast<char*>(data);
  while (size > 0) {
    iovec bytes{next, size};
    msghdr message{};
    message.msg_iov = &bytes;
    message.msg_iovlen = 1;
    alignas(cmsghdr) Control control{};
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    const ssize_t received = recvmsg(socket, &message, 0);
    if (received < 0 && errno == EINTR) {
      continue;
    }
    if (received == 0) {
      errno = ECONNRESET;
    }
    if (received <= 0) {
      return false;
    }
    const cmsghdr* header = CMSG_FIRSTHDR(&message);
    if (header != nullptr && header->cmsg_type == SCM_RIGHTS &&
        header->cmsg_len == CMSG_LEN(sizeof(int))) {
      std::memcpy(&descriptor, CMSG_DATA(header), sizeof(int));
      fcntl(descriptor, F_SETFD, FD_CLOEXEC);
    }
    next += received;
    size -= static_cast<std::size_t>(received);
  }
  return true;
}

} // namespace openreg::platform
