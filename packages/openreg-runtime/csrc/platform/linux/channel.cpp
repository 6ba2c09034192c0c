// SPDX-License-Identifier: BSD-3-Clause
// Packet sockets that pass files.
#include "platform/channel.h"

#include "platform/posix/descriptor.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

namespace openreg::platform {
namespace {

constexpr std::size_t kMostBytes = 1 << 16;

} // namespace

Channel::~Channel() {
  if (handle_ != kNone) {
    close(descriptor_of(*this));
  }
}

Result Channel::make(Channel& first, Channel& second) {
  std::array<int, 2> sockets{};
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets.data()) !=
      0) {
    return Result::last();
  }
  first = Channel(sockets[0]);
  second = Channel(sockets[1]);
  return {};
}

Result Channel::send(const std::string& text, Handle attached, bool& closed)
    const {
  iovec bytes{const_cast<char*>(text.data()), text.size()};
  msghdr message{};
  message.msg_iov = &bytes;
  message.msg_iovlen = 1;
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  if (attached != kNone) {
    const int file = static_cast<int>(attached);
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
    sent = sendmsg(descriptor_of(*this), &message, MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  closed = sent < 0 && (errno == EPIPE || errno == ECONNRESET);
  return sent < 0 && !closed ? Result::last() : Result();
}

std::optional<Packet> Channel::receive() const {
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
    received = recvmsg(descriptor_of(*this), &message, MSG_CMSG_CLOEXEC);
  } while (received < 0 && errno == EINTR);
  if (received <= 0) {
    return std::nullopt;
  }
  packet.text.resize(static_cast<std::size_t>(received));
  const cmsghdr* header = CMSG_FIRSTHDR(&message);
  if (header != nullptr && header->cmsg_type == SCM_RIGHTS &&
      header->cmsg_len == CMSG_LEN(sizeof(int))) {
    int file = -1;
    std::memcpy(&file, CMSG_DATA(header), sizeof(int));
    packet.file = File(file);
  }
  return packet;
}

void Channel::shut_down() const noexcept {
  shutdown(descriptor_of(*this), SHUT_RDWR);
}

} // namespace openreg::platform
