// SPDX-License-Identifier: BSD-3-Clause
// The part of the C API that lists the settings.
#include "base/error.h"
#include "base/struct_size.h"
#include "settings/config.h"

#include <string>

using namespace openreg;

extern "C" {

orError_t orGetSettingCount(int* count) noexcept {
  return api_call("orGetSettingCount", [&] {
    check_not_null(count, "count");
    *count = static_cast<int>(config().settings.size());
  });
}

orError_t orGetSetting(int index, orSetting* setting) noexcept {
  return api_call("orGetSetting", [&] {
    check_struct_size(setting, "setting");
    const auto& settings = config().settings;
    if (index < 0 || index >= static_cast<int>(settings.size())) {
      throw Failure(
          orErrorInvalidValue,
          "index " + std::to_string(index) + " is not in [0, " +
              std::to_string(settings.size()) + ")");
    }
    const auto& entry = settings[static_cast<std::size_t>(index)];
    write_struct(
        setting,
        "setting",
        {sizeof(orSetting),
         entry.name.c_str(),
         entry.value.c_str(),
         entry.source.c_str(),
         entry.description.c_str()});
  });
}

} // extern "C"
