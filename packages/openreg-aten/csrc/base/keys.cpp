// SPDX-License-Identifier: BSD-3-Clause
// Reads OPENREG_DEVICE.
#include "base/keys.h"

#include <openreg/openreg.h>

#include <string_view>

namespace openreg::aten {

bool is_cuda_chosen() {
  // Invalid values count as the default. Python rejects them before it loads
  // the library.
  orSetting setting = OPENREG_SETTING_INIT;
  return orGetSettingByName("OPENREG_DEVICE", &setting) == orSuccess &&
      std::string_view(setting.value) == "cuda";
}

} // namespace openreg::aten
