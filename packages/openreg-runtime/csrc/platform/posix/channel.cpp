// SPDX-License-Identifier: BSD-3-Clause
// Packets over stream sockets, because macOS has no packet sockets that report
// the end. The length precedes the text, and the descriptor goes with it.
#include "platform/channel.h"

#include "platform/posix/descriptor.h"
#include "platform/posix/passing.h"

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <sys/socket.h>

namespace openreg::platform {
namespace {

constexpr std::uint32_t kMostBytes = 1 << 16;

} // namespace

Result Channel::make(Channel& first, Channel& second) {
  std::array<int, 2> sockets{};
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, sockets.data()) != 0) {
    return Result::last();
  }
  for (const int socket : sockets) {
    prepare_socket(socket);
  }
  first = Channel(sockets[0]);
  second = Channel(sockets[1]);
  return {};
}

Result Channel::send(const std::string& text, Handle attached, bool& closed)
    const {
  const auto size = static_cast<std::uint32_t>(text.size());
  std::string bytes(sizeof(size), '\0');
  std::memcpy(bytes.data(), &size, sizeof(size));
  bytes += text;
  const std::lock_guard lock(sending_); // threads share a channel
  const bool sent = send_all(
      descriptor_of(*this),
      bytes.data(),
      bytes.size(),
      static_cast<int>(attached));
  closed = !sent && (errno == EPIPE || errno == ECONNRESET);
  return sent || closed ? Result() : Result::last();
}

std::optional<Packet> Channel::receive() const {
  Packet packet;
  std::uint32_t size = 0;
  int descriptor = -1;
  const int socket = descriptor_of(*this);
  const bool begun = receive_all(socket, &size, sizeof(size), descriptor);
  packet.file = File(descriptor);
  if (!begun || size > kMostBytes) {
    return std::nullopt;
  }
  packet.text.resize(size);
  if (!receive_all(socket, packet.text.data(), size, descriptor)) {
    return std::nullopt;
  }
  return packet;
}

} // namespace openreg::platform
