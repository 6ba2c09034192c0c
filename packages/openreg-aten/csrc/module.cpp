// SPDX-License-Identifier: BSD-3-Clause
// The Python module openreg_aten._C.
#include "device/allocator.h"
#include "device/device.h"
#include "device/exit.h"
#include "device/generator.h"
#include "kernel/roads.h"
#include "mechanism.h"

#include <torch/csrc/Exceptions.h>
#include <torch/csrc/Generator.h>

#include <nanobind/nanobind.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

namespace nb = nanobind;
using namespace openreg::aten;

namespace {

using Row = std::tuple<std::string, std::string, std::string, bool>;

std::vector<Row> list_mechanisms() {
  std::vector<Row> rows;
  for (const Mechanism& each : mechanisms()) {
    rows.emplace_back(each.name, each.summary, each.source, each.enabled);
  }
  return rows;
}

c10::DeviceIndex to_index(int device) {
  check_device(device);
  return static_cast<c10::DeviceIndex>(device);
}

/// Turns c10's exceptions into PyTorch's Python exceptions.
template <typename Body>
auto translated(Body&& body) {
  try {
    return body();
  } catch (const c10::Error&) {
    torch::translate_exception_to_python(std::current_exception());
    throw nb::python_error();
  }
}

} // namespace

NB_MODULE(_C, m) {
  m.doc() = "PyTorch's C++ extension points, implemented for OpenReg devices.";

  m.def(
      "enable_mechanisms",
      [](const std::vector<std::string>& also_known) {
        translated([&] { enable_mechanisms(also_known); });
      },
      nb::arg("also_known"));
  m.def("mechanisms", &list_mechanisms);
  m.def("count_roads", &count_roads, nb::arg("change"));
  m.def("road_counts", &road_counts);

  m.def("init", [] { translated(&initialize); });
  m.def("is_initialized", &is_initialized);
  m.def("is_in_bad_fork", &in_bad_fork);

  m.def(
      "drain_autograd",
      &drain_autograd,
      nb::call_guard<nb::gil_scoped_release>());

  m.def("device_count", [] { return static_cast<int>(device_count()); });
  m.def("current_device", [] {
    return translated([] { return static_cast<int>(current_device()); });
  });
  m.def(
      "set_device",
      [](int device) { translated([&] { set_device(to_index(device)); }); },
      nb::arg("device"));
  m.def(
      "exchange_device",
      [](int device) {
        return translated([&] {
          return static_cast<int>(exchange_device(to_index(device)));
        });
      },
      nb::arg("device"));
  m.def(
      "maybe_exchange_device",
      [](int device) {
        return translated([&] {
          return device < 0
              ? -1
              : static_cast<int>(exchange_device(to_index(device)));
        });
      },
      nb::arg("device"));
  m.def(
      "synchronize",
      [](int device) {
        translated([&] {
          const auto index = to_index(device);
          const nb::gil_scoped_release release;
          synchronize_device(index);
        });
      },
      nb::arg("device"));
  m.def(
      "memory_info",
      [](int device) {
        return translated(
            [&] { return device_allocator().getMemoryInfo(to_index(device)); });
      },
      nb::arg("device"));
  m.def(
      "default_generator",
      [](int device) {
        return translated([&] {
          return nb::steal<nb::object>(
              THPGenerator_Wrap(default_generator(to_index(device))));
        });
      },
      nb::arg("device"));
}
