// SPDX-License-Identifier: BSD-3-Clause
// Queries and waits that leave the errors of streams to others.
#pragma once

#include "base/export.h"

#include <openreg/openreg.h>

#include <c10/core/Device.h>

namespace openreg::aten {

/// Waits for the default stream and the pool streams of a device. Throws an
/// error of their work but leaves it on its stream. synchronize_device() would
/// clear it.
OPENREG_ATEN_API void wait_for_all_streams(c10::DeviceIndex device);

/// Whether a stream has no work. False if the stream does not exist.
bool is_idle(orStream_t stream);

/// Whether the default stream and the pool streams of a device have no work.
bool all_streams_are_idle(c10::DeviceIndex device);

} // namespace openreg::aten
