// SPDX-License-Identifier: BSD-3-Clause
// The settings of libraries above this one, which register them, and the one
// that these libraries share: OPENREG_DISABLE.
#pragma once

#include "settings/setting.h"

#include <openreg/openreg.h>

#include <string_view>
#include <vector>

namespace openreg::registered_settings {

/// Registers a setting, or does nothing if it is registered in the same way.
/// Throws Failure if it is registered in another, or is one of the runtime's.
void add(
    const char* name,
    const char* initial,
    orSettingKind kind,
    const char* description);

/// The setting of that name, or null. Throws Failure if its value is wrong.
const Setting* find(std::string_view name);

/// All of them, in the order of their registration, for good. Throws Failure if
/// a value is wrong.
std::vector<const Setting*> all();

} // namespace openreg::registered_settings
