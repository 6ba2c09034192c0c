// SPDX-License-Identifier: BSD-3-Clause
// The Python class Setting, the functions that list and register settings, and
// the schedule.
#include "bindings/bindings.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <vector>

namespace openreg::python {
namespace {

using namespace nb::literals;

struct Setting {
  std::string name;
  std::string value;
  std::string source;
  std::string description;
  std::uint64_t number;
  std::vector<std::string> names;
};

Setting copy_of(const orSetting& setting) {
  return {
      setting.name,
      setting.value,
      setting.source,
      setting.description,
      setting.number,
      {setting.names, setting.names + setting.nameCount}};
}

std::vector<Setting> settings() {
  int count = 0;
  check(orGetSettingCount(&count));
  std::vector<Setting> result;
  for (int index = 0; index < count; ++index) {
    orSetting setting = OPENREG_SETTING_INIT;
    check(orGetSetting(index, &setting));
    result.push_back(copy_of(setting));
  }
  return result;
}

Setting setting(const std::string& name) {
  orSetting result = OPENREG_SETTING_INIT;
  check(orGetSettingByName(name.c_str(), &result));
  return copy_of(result);
}

void register_setting(
    const std::string& name,
    const std::string& initial,
    const std::string& kind,
    const std::string& description) {
  if (kind != "switch" && kind != "number") {
    const std::string text = "register_setting: kind is '" + kind +
        "', expected 'switch' or 'number'";
    throw nb::value_error(text.c_str());
  }
  check(orRegisterSetting(
      name.c_str(),
      initial.c_str(),
      kind == "switch" ? orSettingSwitch : orSettingNumber,
      description.c_str()));
}

void set_schedule(const std::string& schedule) {
  check(orSetSchedule(schedule.c_str()));
}

std::string get_schedule() {
  const char* schedule = nullptr;
  check(orGetSchedule(&schedule));
  return schedule;
}

void set_device_launcher(const std::vector<std::string>& arguments) {
  std::vector<const char*> words;
  for (const std::string& each : arguments) {
    words.push_back(each.c_str());
  }
  check(orSetDeviceLauncher(words.data(), words.size()));
}

} // namespace

void init_settings(nb::module_& m) {
  nb::class_<Setting>(m, "Setting", "A setting of the environment.")
      .def_ro("name", &Setting::name, "The environment variable.")
      .def_ro("value", &Setting::value, "Its value, as text.")
      .def_ro("source", &Setting::source, "``'default'`` or ``'environment'``.")
      .def_ro("description", &Setting::description, "Its meaning.")
      .def_ro(
          "number", &Setting::number, "Its value if that is a number, else 0.")
      .def_ro(
          "names",
          &Setting::names,
          "The names, if its value is a list of them.")
      .def("__repr__", [](const Setting& self) {
        return "Setting(" + self.name + "=" + self.value + ", " + self.source +
            ")";
      });

  m.def(
      "settings",
      &settings,
      "All settings, each with its value and the source of the value.\n\n"
      "Raises:\n"
      "    OpenRegError: If an environment variable has an invalid value.");
  m.def(
      "setting",
      &setting,
      "name"_a,
      "The setting of that name.\n\n"
      "Raises:\n"
      "    OpenRegError: If it does not exist or has an invalid value. A\n"
      "        runtime setting also fails if another one is invalid.");
  m.def(
      "register_setting",
      &register_setting,
      "name"_a,
      "initial"_a,
      "kind"_a,
      "description"_a,
      "Adds an environment variable of another package to the settings.\n\n"
      "An invalid value fails the functions that return settings, not\n"
      "this one.\n\n"
      "Args:\n"
      "    name: The environment variable.\n"
      "    initial: The value if it is not set.\n"
      "    kind: The type: ``'switch'`` is 0 or 1, ``'number'`` a whole\n"
      "        number.\n"
      "    description: The meaning, for lists of settings.\n\n"
      "Raises:\n"
      "    OpenRegError: If another setting has the name.\n"
      "    ValueError: If the kind is unknown.");
  m.def("set_schedule", &set_schedule, "schedule"_a);
  m.def("get_schedule", &get_schedule);
  m.def("set_device_launcher", &set_device_launcher, "arguments"_a);
}

} // namespace openreg::python
