// SPDX-License-Identifier: BSD-3-Clause
// Packets of text, each with a file or without, over a pair of sockets.
#pragma once

#include <optional>
#include <string>
#include <utility>

namespace openreg {

/// A pair of connected sockets, which a new program does not get. Throws
/// orErrorUnknown.
std::pair<int, int> make_socket_pair();

/// Sends one packet; false if nobody can receive it any more. Throws
/// orErrorUnknown if the system does not send it.
bool send_packet(int socket, const std::string& text, int file = -1);

struct Packet {
  std::string text;
  int file = -1; // the receiver's from here on
};
/// Waits for a packet; nothing if nobody can send one any more.
std::optional<Packet> receive_packet(int socket);

} // namespace openreg
