// SPDX-License-Identifier: BSD-3-Clause
// Runs work on a device in the order of its current stream. All inline work
// uses it.
#pragma once

#include "device/activity.h"
#include "device/error.h"
#include "device/gil.h"
#include "stream/stream.h"

#include <openreg/openreg.h>

#include <c10/core/Device.h>

#include <exception>

namespace openreg::aten {

/// Runs `work` on this thread, in the order of the current stream of the
/// device, and returns when it is complete. Throws what `work` throws. `info`
/// describes the work for activity records, and may be null.
template <typename Work>
void run_on_current_stream(
    c10::DeviceIndex device,
    Work&& work,
    const orLaunchInfo* info = nullptr) {
  struct Arguments {
    Work& work;
    std::exception_ptr failure;
  } arguments{work, nullptr};
  const GilRelease released; // PyTorch fills and copies storages with the GIL
  OPENREG_CHECK(orLaunchKernelBlockingWithInfo(
      current_handle(device),
      [](void* argument) {
        auto& own = *static_cast<Arguments*>(argument);
        const KernelOperators hidden;
        try {
          own.work();
        } catch (...) {
          own.failure = std::current_exception();
        }
      },
      &arguments,
      info));
  if (arguments.failure) {
    std::rethrow_exception(arguments.failure);
  }
}

} // namespace openreg::aten
