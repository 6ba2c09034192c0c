// SPDX-License-Identifier: BSD-3-Clause
// Discards the device state of this library before the runtime resets the
// device.
#include "extension/reset.h"

#include "device/device.h"
#include "device/error.h"
#include "memory/allocator.h"
#include "stream/stream.h"

namespace openreg::aten {

void reset_device(c10::DeviceIndex device) {
  check_device(device);
  const CurrentDevice scope(device);
  OPENREG_CHECK(orDeviceReset());
  abandon_memory(device);
  forget_streams(device);
}

} // namespace openreg::aten
