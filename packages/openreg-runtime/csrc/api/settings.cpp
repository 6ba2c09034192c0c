// SPDX-License-Identifier: BSD-3-Clause
// The part of the C API that lists the settings.
#include "base/error.h"
#include "base/struct_size.h"
#include "settings/config.h"
#include "settings/registered.h"

#include <string>
#include <string_view>
#include <vector>

using namespace openreg;

namespace {

/// The settings of the runtime, and then the registered ones.
std::vector<const Setting*> all_settings() {
  std::vector<const Setting*> result;
  for (const Setting& setting : config().settings) {
    result.push_back(&setting);
  }
  const auto registered = registered_settings::all();
  result.insert(result.end(), registered.begin(), registered.end());
  return result;
}

const Setting& setting_of(std::string_view name) {
  if (const Setting* setting = registered_settings::find(name)) {
    return *setting;
  }
  for (const Setting& setting : config().settings) {
    if (setting.name == name) {
      return setting;
    }
  }
  throw Failure(
      orErrorInvalidValue,
      "name '" + std::string(name) + "' is not the name of a setting");
}

void write(orSetting* target, const Setting& setting) {
  write_struct(
      target,
      "setting",
      {sizeof(orSetting),
       setting.name.c_str(),
       setting.value.c_str(),
       setting.source.c_str(),
       setting.description.c_str(),
       setting.number,
       setting.names.empty() ? nullptr : setting.names.data(),
       setting.names.size()});
}

} // namespace

extern "C" {

orError_t orGetSettingCount(int* count) noexcept {
  return api_call("orGetSettingCount", [&] {
    check_not_null(count, "count");
    *count = static_cast<int>(all_settings().size());
  });
}

orError_t orGetSetting(int index, orSetting* setting) noexcept {
  return api_call("orGetSetting", [&] {
    check_struct_size(setting, "setting");
    const auto settings = all_settings();
    if (index < 0 || index >= static_cast<int>(settings.size())) {
      throw Failure(
          orErrorInvalidValue,
          "index " + std::to_string(index) + " is not in [0, " +
              std::to_string(settings.size()) + ")");
    }
    write(setting, *settings[static_cast<std::size_t>(index)]);
  });
}

orError_t orGetSettingByName(const char* name, orSetting* setting) noexcept {
  return api_call("orGetSettingByName", [&] {
    check_not_null(name, "name");
    check_struct_size(setting, "setting");
    write(setting, setting_of(name));
  });
}

orError_t orRegisterSetting(
    const char* name,
    const char* initial,
    orSettingKind kind,
    const char* description) noexcept {
  return api_call("orRegisterSetting", [&] {
    check_not_null(name, "name");
    check_not_null(initial, "initial");
    check_not_null(description, "description");
    registered_settings::add(name, initial, kind, description);
  });
}

} // extern "C"
