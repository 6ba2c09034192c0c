// SPDX-License-Identifier: BSD-3-Clause
// The device type that openreg-aten has registered.
#pragma once

#include <openreg/openreg.h>

#include <c10/core/DeviceType.h>

#include <string_view>

namespace openreg {

/// Returns CUDA with OPENREG_DEVICE=cuda, else PrivateUse1.
inline c10::DeviceType device_type() {
  static const c10::DeviceType type = [] {
    orSetting setting = OPENREG_SETTING_INIT;
    const bool is_cuda =
        orGetSettingByName("OPENREG_DEVICE", &setting) == orSuccess &&
        std::string_view(setting.value) == "cuda";
    return is_cuda ? c10::kCUDA : c10::kPrivateUse1;
  }();
  return type;
}

} // namespace openreg
