// SPDX-License-Identifier: BSD-3-Clause
// Device and the functions that belong to no object.
#include "bindings.h"

#include <nanobind/operators.h>
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
};

int device_count() {
  int count = 0;
  check(orGetDeviceCount(&count));
  return count;
}

int current_device() {
  int device = 0;
  check(orGetDevice(&device));
  return device;
}

orDeviceProp properties(int device) {
  orDeviceProp prop;
  check(orGetDeviceProperties(&prop, device));
  return prop;
}

std::size_t free_memory(const Device& device) {
  const DeviceScope scope(device.index);
  std::size_t free = 0;
  std::size_t total = 0;
  check(orMemGetInfo(&free, &total));
  return free;
}

Stream default_stream(const Device& device) {
  orStream_t handle = nullptr;
  check(orStreamGetDefault(&handle, device.index));
  return {handle, false};
}

void synchronize(const DeviceLike& device) {
  const DeviceScope scope(index_of(device));
  check(without_gil([] { return orDeviceSynchronize(); }));
}

std::vector<Setting> settings() {
  int count = 0;
  check(orGetSettingCount(&count));
  std::vector<Setting> result;
  for (int index = 0; index < count; ++index) {
    orSetting setting;
    check(orGetSetting(index, &setting));
    result.push_back(
        {setting.name, setting.value, setting.source, setting.description});
  }
  return result;
}

} // namespace

int index_of(const DeviceLike& device) {
  if (!device) {
    return current_device();
  }
  if (const auto* object = std::get_if<Device>(&*device)) {
    return object->index;
  }
  return std::get<int>(*device);
}

DeviceScope::DeviceScope(int device) : previous_(current_device()) {
  check(orSetDevice(device));
}

DeviceScope::~DeviceScope() {
  static_cast<void>(orSetDevice(previous_)); // it was set before: it exists
}

void init_device(nb::module_& m) {
  nb::class_<Device>(m, "Device", "One of the simulated devices.")
      .def(
          "__init__",
          [](Device* self, int index) {
            properties(index); // fails if there is no such device
            new (self) Device{index};
          },
          "index"_a,
          "Names the device ``index``; fails if there is no such device.")
      .def_ro("index", &Device::index, "Its number, from 0.")
      .def_prop_ro(
          "name",
          [](const Device& self) {
            return std::string(properties(self.index).name);
          },
          "What the device calls itself.")
      .def_prop_ro(
          "total_memory",
          [](const Device& self) {
            return properties(self.index).totalGlobalMem;
          },
          "Its memory in bytes.")
      .def_prop_ro("free_memory", &free_memory, "Bytes that no block uses now.")
      .def_prop_ro(
          "default_stream",
          &default_stream,
          "The stream that work goes to if none is given.")
      .def(
          "synchronize",
          [](const Device& self) { synchronize(self); },
          "Waits for all work of the device.\n\n"
          "Raises:\n"
          "    OpenRegError: If a kernel failed since the last wait.")
      .def(
          "__eq__",
          [](const Device& self, const Device& other) {
            return self.index == other.index;
          },
          nb::is_operator())
      .def("__hash__", [](const Device& self) { return self.index; })
      .def("__repr__", [](const Device& self) {
        return "Device(" + std::to_string(self.index) + ")";
      });

  nb::class_<Setting>(m, "Setting", "A setting of the environment.")
      .def_ro("name", &Setting::name, "The environment variable.")
      .def_ro("value", &Setting::value, "Its value, as text.")
      .def_ro("source", &Setting::source, "``'default'`` or ``'environment'``.")
      .def_ro("description", &Setting::description, "What it means.")
      .def("__repr__", [](const Setting& self) {
        return "Setting(" + self.name + "=" + self.value + ", " + self.source +
            ")";
      });

  m.def(
      "device_count",
      &device_count,
      "The number of devices.\n\n"
      "Raises:\n"
      "    OpenRegError: If an environment variable has a wrong value.");
  m.def(
      "current_device",
      [] { return Device{current_device()}; },
      "The device that is current for this thread.");
  m.def(
      "set_device",
      [](const std::variant<Device, int>& device) {
        check(orSetDevice(index_of(device)));
      },
      "device"_a,
      "Makes a device current for this thread.");
  m.def(
      "synchronize",
      &synchronize,
      "device"_a = nb::none(),
      "Waits for all work of a device, by default of the current one.\n\n"
      "Raises:\n"
      "    OpenRegError: If a kernel failed since the last wait.");
  m.def(
      "settings",
      &settings,
      "All settings, each with its value and where that came from.\n\n"
      "Raises:\n"
      "    OpenRegError: If an environment variable has a wrong value.");
}

} // namespace openreg::python
