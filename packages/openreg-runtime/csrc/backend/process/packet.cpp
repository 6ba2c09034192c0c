// SPDX-License-Identifier: BSD-3-Clause
// Errors of channels.
#include "backend/process/packet.h"

#include "base/error.h"

namespace openreg {

using platform::Channel;

std::pair<Channel, Channel> make_channel() {
  std::pair<Channel, Channel> ends;
  if (const auto made = Channel::make(ends.first, ends.second); !made) {
    throw Failure(
        orErrorUnknown,
        "cannot create a socket for a device process: " + made.text());
  }
  return ends;
}

bool send_packet(
    const Channel& channel,
    const std::string& text,
    Channel::Handle attached) {
  bool closed = false;
  if (const auto sent = channel.send(text, attached, closed); !sent) {
    throw Failure(
        orErrorUnknown,
        "cannot send a packet to a device process: " + sent.text());
  }
  return !closed;
}

} // namespace openreg
