// SPDX-License-Identifier: BSD-3-Clause
// Settings that libraries above the runtime register, and their common setting
// OPENREG_DISABLE.
#pragma once

#include "settings/setting.h"

#include <openreg/openreg.h>

#include <string_view>
#include <vector>

namespace openreg::registered_settings {

/// Registers a setting. Does nothing if the same setting is registered. Throws
/// Failure if it is registered differently, or if the runtime has a setting of
/// that name.
void add(
    const char* name,
    const char* initial,
    orSettingKind kind,
    const char* description);

/// The setting of that name, or null. Throws Failure if its value is invalid.
const Setting* find(std::string_view name);

/// Whether OPENREG_DEVICE is cuda. Throws Failure if its value is invalid.
bool is_cuda();

/// All settings in registration order. The pointers stay valid. Throws Failure
/// if a value is invalid.
std::vector<const Setting*> all();

} // namespace openreg::registered_settings
