// SPDX-License-Identifier: BSD-3-Clause
// Devices in separate processes are not available on Windows: they need
// channels that pass files, and a launcher that forks.
#include "platform/channel.h"
#include "platform/child.h"
#include "platform/file.h"
#include "platform/windows/system.h"

namespace openreg::platform {

Channel::~Channel() = default;

Result Channel::make(Channel&, Channel&) {
  return Result(ERROR_NOT_SUPPORTED);
}

Result Channel::send(const std::string&, Handle, bool&) const {
  return Result(ERROR_NOT_SUPPORTED);
}

std::optional<Packet> Channel::receive() const {
  return std::nullopt;
}

void Channel::shut_down() const noexcept {}

Result Child::start(const std::vector<std::string>&, const Channel&, Child&) {
  return Result(ERROR_NOT_SUPPORTED);
}

std::string Child::wait() const {
  return process_ == 0 ? "" : " with an unknown status";
}

std::string signal_text(int number) {
  return "signal " + std::to_string(number);
}

Result size_of(const File&, std::uint64_t&) {
  return Result(ERROR_NOT_SUPPORTED);
}

} // namespace openreg::platform
