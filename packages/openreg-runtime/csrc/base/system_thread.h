// SPDX-License-Identifier: BSD-3-Clause
// Signal and cancellation rules for a library that has threads.
#pragma once

#include "platform/thread.h"

#include <thread>
#include <utility>

namespace openreg {

using platform::CancellationDeferred;
using platform::SignalsBlocked;

/// Runs `body` on a new library thread. Throws std::system_error.
template <typename Body>
void start_thread(Body&& body) {
  const SignalsBlocked blocked;
  std::thread(std::forward<Body>(body)).detach();
}

} // namespace openreg
