// SPDX-License-Identifier: BSD-3-Clause
// What callers say of their launches.
#pragma once

#include "backend/backend.h"

#include <openreg/activity.h>

namespace openreg {

/// Throws orErrorInvalidValue for null, and for what no launch is.
LaunchInfo read_info(const orLaunchInfo* info);

} // namespace openreg
