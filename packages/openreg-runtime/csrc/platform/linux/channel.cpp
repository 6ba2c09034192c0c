// SPDX-License-Identifier: BSD-3-Clause
// Packet sockets that pass files.
#include "platform/channel.h"

#include "platform/posix/descriptor.h"
#include "platform/posix/descriptor_message.h"

#include <array>
#include <cerrno>
#include <sys/socket.h>

namespace openreg::platform {
namespace {

constexpr std::size_t kMostBytes = 1 << 16;

} // namespace

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
  DescriptorMessage message(const_cast<char*>(text.data()), text.size());
  const msghdr* header = message.with(static_cast<int>(attached));
  ssize_t sent = 0;
  do {
    sent = sendmsg(descriptor_of(*this), header, MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  closed = sent < 0 && (errno == EPIPE || errno == ECONNRESET);
  return sent < 0 && !closed ? Result::last() : Result();
}

std::optional<Packet> Channel::receive() const {
  Packet packet;
  packet.text.resize(kMostBytes);
  DescriptorMessage message(packet.text.data(), packet.text.size());
  msghdr* header = message.empty();
  ssize_t received = 0;
  do {
    received = recvmsg(descriptor_of(*this), header, MSG_CMSG_CLOEXEC);
  } while (received < 0 && errno == EINTR);
  if (received <= 0) {
    return std::nullopt;
  }
  packet.text.resize(static_cast<std::size_t>(received));
  packet.file = File(message.descriptor());
  return packet;
}

} // namespace openreg::platform
