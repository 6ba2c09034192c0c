// SPDX-License-Identifier: BSD-3-Clause
// The channels to the launcher and to device processes.
#pragma once

#include "platform/channel.h"

#include <string>
#include <utility>

namespace openreg {

/// The two ends of a channel. Throws orErrorUnknown.
std::pair<platform::Channel, platform::Channel> make_channel();

/// Sends one packet, with the file or channel of a handle unless it is kNone;
/// false if the other end is closed. Throws orErrorUnknown if the system does
/// not send it.
bool send_packet(
    const platform::Channel& channel,
    const std::string& text,
    platform::Channel::Handle attached = platform::Channel::kNone);

} // namespace openreg
