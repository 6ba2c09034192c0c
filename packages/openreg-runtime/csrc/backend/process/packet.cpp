// SPDX-License-Identifier: BSD-3-Clause
// Packet sockets that pass files.
#include "backend/process/packet.h"

#include "base/error.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <string>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

namespace openreg {
namespace {

constexpr std::size_t kMostBytes = 1 << 16;

} // namespace

std::pair<int, int> make_socket_pair() {
  std::array<int, 2> sockets{};
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets.data()) !=
      0) {
    throw Failure(
        orErrorUnknown,
        std::string("cannot create a socket for a device process: ") +
            std::strerror(errno));
  }
  return {sockets[0], sockets[1]};
}

bool send_packet(int socket, const std::string& text, int file) {
  iovec bytes{const_cast<char*>(text.data()), text.size()};
  msghdr message{};
  message.msg_iov = &bytes;
  message.msg_iovlen = 1;
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  if (file >= 0) {
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(header), &file, sizeof(int));
  }
  ssize_t sent = 0;
  do {
    sent = sendmsg(socket, &message, MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  if (sent < 0 && errno != EPIPE && errno != ECONNRESET) {
    throw Failure(
        orErrorUnknown,
        std::string("cannot send a packet to a device process: ") +
            std::strerror(errno));
  }
  return sent >= 0;
}

std::optional<Packet> receive_packet(int socket) {
  Packet packet;
  packet.text.resize(kMostBytes);
  iovec bytes{packet.text.data(), packet.text.size()};
  msghdr message{};
  message.msg_iov = &bytes;
  message.msg_iovlen = 1;
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  ssize_t received = 0;
  do {
    received = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
  } while (received < 0 && errno == EINTR);
  if (received <= 0) {
    return std::nullopt;
  }
  packet.text.resize(static_cast<std::size_t>(received));
  const cmsghdr* header = CMSG_FIRSTHDR(&message);
  if (header != nullptr && header->cmsg_type == SCM_RIGHTS &&
      header->cmsg_len == CMSG_LEN(sizeof(int))) {
    std::memcpy(&packet.file, CMSG_DATA(header), sizeof(int));
  }
  return packet;
}

} // namespace openreg
