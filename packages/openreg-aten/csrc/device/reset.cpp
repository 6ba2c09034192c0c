// SPDX-License-Identifier: BSD-3-Clause
// What PyTorch's side of a device forgets when the runtime resets it.
#include "device/reset.h"

#include "device/allocator.h"
#include "device/device.h"
#include "device/error.h"
#include "device/stream.h"

namespace openreg::aten {

void reset_device(c10::DeviceIndex device) {
  check_device(device);
  const CurrentDevice scope(device);
  OPENREG_CHECK(orDeviceReset());
  abandon_memory(device);
  forget_streams(device);
}

} // namespace openreg::aten
