// SPDX-License-Identifier: BSD-3-Clause
// Text packets over a socket pair, each with or without a file.
#pragma once

#include <optional>
#include <string>
#include <utility>

namespace openreg {

/// A pair of connected sockets, closed on exec. Throws orErrorUnknown.
std::pair<int, int> make_socket_pair();

/// Sends one packet; false if the other end is closed. Throws orErrorUnknown if
/// the system does not send it.
bool send_packet(int socket, const std::string& text, int file = -1);

struct Packet {
  std::string text;
  int file = -1; // the receiver's from here on
};
/// Waits for a packet; empty if the other end is closed.
std::optional<Packet> receive_packet(int socket);

} // namespace openreg
