// SPDX-License-Identifier: BSD-3-Clause
// Messages with SCM_RIGHTS.
#include "platform/posix/passing.h"

#include "platform/posix/descriptor_message.h"

#include <cerrno>
#include <fcntl.h>
#include <sys/socket.h>

namespace openreg::platform {
namespace {

#if defined(MSG_NOSIGNAL)
constexpr int kSendFlags = MSG_NOSIGNAL;
#else
constexpr int kSendFlags = 0; // the socket has an option
#endif

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
    DescriptorMessage message(next, size);
    const ssize_t sent = sendmsg(socket, message.with(descriptor), kSendFlags);
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
    DescriptorMessage message(next, size);
    const ssize_t received = recvmsg(socket, message.empty(), 0);
    if (received < 0 && errno == EINTR) {
      continue;
    }
    if (received == 0) {
      errno = ECONNRESET;
    }
    if (received <= 0) {
      return false;
    }
    if (const int arrived = message.descriptor(); arrived >= 0) {
      descriptor = arrived;
      fcntl(descriptor, F_SETFD, FD_CLOEXEC);
    }
    next += received;
    size -= static_cast<std::size_t>(received);
  }
  return true;
}

} // namespace openreg::platform
