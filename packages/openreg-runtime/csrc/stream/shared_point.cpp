// SPDX-License-Identifier: BSD-3-Clause
// How a shared record is reached, by its stream and for other processes.
#include "stream/shared_point.h"

#include <thread>

namespace openreg {

SharedPoint::~SharedPoint() {
  // Its stream did not take it, so nothing else would.
  if (stream() != nullptr) {
    stamp();
  }
}

void SharedPoint::stamp() {
  if (!stamped_.exchange(true)) {
    event_->reach(ticket_);
  }
}

void SharedPoint::reach() {
  stamp();
  reached_ = true;
}

bool SharedPoint::wait_until(Clock::time_point time) {
  if (!event_->wait_until(ticket_, time)) {
    return false;
  }
  while (stream() != nullptr && !reached()) {
    std::this_thread::yield(); // the turn of the record is about to end
  }
  return true;
}

} // namespace openreg
