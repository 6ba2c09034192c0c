// SPDX-License-Identifier: BSD-3-Clause
// Device and the functions that belong to no object.
#include "bindings/bindings.h"

#include <nanobind/operators.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include <array>
#include <atomic>
#include <cmath>
#include <stdexcept>
#include <tuple>
#include <utility>

namespace openreg::python {
namespace {

using namespace nb::literals;

constexpr int kMaxDevices = 64; // OPENREG_DEVICE_COUNT accepts no more
constexpr double kMsPerSecond = 1000;

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
  orDeviceProp prop = OPENREG_DEVICE_PROP_INIT;
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

std::size_t limit_of(const Device& device, orLimit limit) {
  const DeviceScope scope(device.index);
  std::size_t value = 0;
  check(orDeviceGetLimit(&value, limit));
  return value;
}

void set_limit(const Device& device, orLimit limit, std::size_t value) {
  const DeviceScope scope(device.index);
  check(orDeviceSetLimit(limit, value));
}

std::optional<double> wait_timeout(const Device& device) {
  const std::size_t ms = limit_of(device, orLimitWaitTimeout);
  return ms == 0 ? std::nullopt
                 : std::optional(static_cast<double>(ms) / kMsPerSecond);
}

void set_wait_timeout(const Device& device, std::optional<double> seconds) {
  constexpr double kDay = 86400;
  if (seconds && !(*seconds > 0 && *seconds <= kDay)) {
    const std::string text = "Device.wait_timeout is " +
        std::to_string(*seconds) +
        ", expected seconds greater than 0 and at most 86400, or None";
    throw nb::value_error(text.c_str());
  }
  set_limit(
      device,
      orLimitWaitTimeout,
      static_cast<std::size_t>(std::ceil(seconds.value_or(0) * kMsPerSecond)));
}

bool can_access_peer(const Device& device, const DeviceName& other) {
  int result = 0;
  check(orDeviceCanAccessPeer(&result, device.index, index_of(other)));
  return result != 0;
}

void enable_peer_access(const Device& device, const DeviceName& other) {
  const DeviceScope scope(device.index);
  check(orDeviceEnablePeerAccess(index_of(other), 0));
}

void disable_peer_access(const Device& device, const DeviceName& other) {
  const DeviceScope scope(device.index);
  check(orDeviceDisablePeerAccess(index_of(other)));
}

std::array<std::atomic<std::uint64_t>, kMaxDevices> g_resets{};

void reset(const Device& device) {
  const DeviceScope scope(device.index);
  check(without_gil([&] {
    const orError_t error = orDeviceReset();
    if (error == orSuccess) {
      ++g_resets[static_cast<std::size_t>(device.index)];
    }
    return error;
  }));
}

std::tuple<int, int, int> version() {
  int number = 0;
  check(orRuntimeGetVersion(&number));
  return {number / 10000, number / 100 % 100, number % 100};
}

void synchronize(const DeviceLike& device) {
  const DeviceScope scope(index_of(device));
  check(without_gil([] { return orDeviceSynchronize(); }));
}

} // namespace

std::uint64_t resets_of(int device) noexcept {
  return g_resets[static_cast<std::size_t>(device)];
}

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

void set_device_model(
    const std::string& name,
    std::pair<int, int> capability,
    int processors) {
  orDeviceProp prop = OPENREG_DEVICE_PROP_INIT;
  if (name.size() >= sizeof(prop.name)) {
    throw std::invalid_argument(
        "name has " + std::to_string(name.size()) + " bytes: expected 1 to " +
        std::to_string(sizeof(prop.name) - 1));
  }
  name.copy(prop.name, sizeof(prop.name) - 1);
  std::tie(prop.major, prop.minor) = capability;
  prop.multiProcessorCount = processors;
  check(orSetDeviceModel(&prop));
}

void init_device(nb::module_& m) {
  m.def(
      "set_device_model",
      &set_device_model,
      "name"_a,
      "capability"_a,
      "processors"_a);
  nb::class_<Device>(m, "Device", "One of the simulated devices.")
      .def(
          "__init__",
          [](Device* self, int index) {
            properties(index); // fails if it does not exist
            new (self) Device{index};
          },
          "index"_a,
          "Selects device ``index``; fails if it does not exist.")
      .def_ro("index", &Device::index, "Its number, from 0.")
      .def_prop_ro(
          "name",
          [](const Device& self) {
            return std::string(properties(self.index).name);
          },
          "The device's name.")
      .def_prop_ro(
          "capability",
          [](const Device& self) {
            const orDeviceProp prop = properties(self.index);
            return std::make_tuple(prop.major, prop.minor);
          },
          "The device's compute capability, as (major, minor).")
      .def_prop_ro(
          "multi_processor_count",
          [](const Device& self) {
            return properties(self.index).multiProcessorCount;
          },
          "The number of processors; by default the CPU cores.")
      .def_prop_ro(
          "total_memory",
          [](const Device& self) {
            return properties(self.index).totalGlobalMem;
          },
          "The device memory in bytes.")
      .def_prop_ro("free_memory", &free_memory, "Bytes that no block uses now.")
      .def_prop_rw(
          "memory_limit",
          [](const Device& self) { return limit_of(self, orLimitMemory); },
          [](const Device& self, std::int64_t limit) {
            set_limit(
                self,
                orLimitMemory,
                checked_size("Device.memory_limit", limit));
          },
          "Bytes that blocks may use; by default all device memory.\n\n"
          "With a limit below the present use, allocations fail until\n"
          "enough is freed.")
      .def_prop_rw(
          "wait_timeout",
          &wait_timeout,
          &set_wait_timeout,
          nb::for_setter("seconds"_a.none()),
          "Seconds that a call may wait for its work; None: no limit.\n\n"
          "A longer wait raises ``orErrorTimeout``; the work continues.\n"
          "Rounded up to milliseconds. The default is\n"
          "``OPENREG_WAIT_TIMEOUT``.")
      .def_prop_ro(
          "default_stream",
          &default_stream,
          "The stream that is used if no stream is given.")
      .def(
          "synchronize",
          [](const Device& self) { synchronize(self); },
          "Waits for all work of the device.\n\n"
          "Raises:\n"
          "    OpenRegError: If a kernel failed since the last wait, the "
          "device\n"
          "        has failed, or the wait takes longer than its timeout.")
      .def(
          "reset",
          &reset,
          "Resets the device to its initial state.\n\n"
          "Waits for running commands and drops queued ones. Its buffers\n"
          "and streams end: objects for them raise from then on. Its\n"
          "failure, limits and peer access are reset.\n\n"
          "Raises:\n"
          "    OpenRegError: If the wait exceeds the timeout of the device,\n"
          "        which is then lost, or if a kernel of the device calls it.")
      .def(
          "lose",
          [](const Device& self) { check(orDeviceLose(self.index)); },
          "Loses the device, as if it were unplugged.\n\n"
          "Queued commands are dropped, and calls raise\n"
          "``orErrorDeviceLost`` until ``reset``.")
      .def(
          "can_access_peer",
          &can_access_peer,
          "other"_a,
          "True if kernels of this device can access memory of ``other``.\n\n"
          "Args:\n"
          "    other: A device; the result is false for the same device.")
      .def(
          "enable_peer_access",
          &enable_peer_access,
          "other"_a,
          "Allows kernels of this device to access memory of ``other``.\n\n"
          "Copies between devices do not need it.\n\n"
          "Args:\n"
          "    other: A device for which ``can_access_peer`` is true.\n\n"
          "Raises:\n"
          "    OpenRegError: If it is enabled already, or not possible.")
      .def(
          "disable_peer_access",
          &disable_peer_access,
          "other"_a,
          "Disables access to the memory of ``other``.\n\n"
          "Args:\n"
          "    other: A device for which access was enabled.\n\n"
          "Raises:\n"
          "    OpenRegError: If it is not enabled.")
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

  m.def(
      "device_count",
      &device_count,
      "The number of devices.\n\n"
      "Raises:\n"
      "    OpenRegError: If an environment variable has an invalid value.");
  m.def(
      "current_device",
      [] { return Device{current_device()}; },
      "The current device of this thread.");
  m.def(
      "set_device",
      [](const DeviceName& device) { check(orSetDevice(index_of(device))); },
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
      "version",
      &version,
      "The version of ``libopenreg``: major, minor, patch.");
}

} // namespace openreg::python
