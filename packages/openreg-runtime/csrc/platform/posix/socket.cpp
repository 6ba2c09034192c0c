// SPDX-License-Identifier: BSD-3-Clause
// The end of a channel, which is the same for all kinds of sockets.
#include "platform/channel.h"
#include "platform/posix/descriptor.h"

#include <sys/socket.h>
#include <unistd.h>

namespace openreg::platform {

Channel::~Channel() {
  if (handle_ != kNone) {
    close(descriptor_of(*this));
  }
}

void Channel::shut_down() const noexcept {
  shutdown(descriptor_of(*this), SHUT_RDWR);
}

} // namespace openreg::platform
