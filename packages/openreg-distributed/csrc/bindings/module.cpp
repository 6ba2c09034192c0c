// SPDX-License-Identifier: BSD-3-Clause
// The Python module openreg_distributed._C.
#include "occl/backend.h"
#include "occl/pending.h"
#include "record/flight.h"
#include "symmetric/symmetric_memory.h"

#include <torch/csrc/utils/pybind.h>

#include <pybind11/chrono.h>

namespace py = pybind11;

namespace openreg::distributed {
namespace {

// Calls gloo's constructor in Python, because its C++ header needs gloo's
// headers.
c10::intrusive_ptr<c10d::Backend> make_engine(
    const c10::intrusive_ptr<c10d::Store>& store,
    int rank,
    const OcclOptions& options) {
  const py::gil_scoped_acquire gil;
  return py::module_::import("openreg_distributed._engine")
      .attr("make_engine")(
          store,
          rank,
          options.global_ranks_in_group,
          options.timeout,
          options.group_name)
      .cast<c10::intrusive_ptr<c10d::Backend>>();
}

c10::intrusive_ptr<OcclBackend> create(
    const c10::intrusive_ptr<c10d::Backend>& gloo,
    std::chrono::milliseconds timeout,
    const std::string& group_name,
    const std::vector<uint64_t>& global_ranks,
    bool share_memory) {
  auto options = c10::make_intrusive<OcclOptions>(timeout);
  options->group_name = group_name;
  options->global_ranks_in_group = global_ranks;
  options->share_memory = share_memory;
  const py::gil_scoped_release no_gil; // the ranks connect
  return c10::make_intrusive<OcclBackend>(
      gloo, std::move(options), &make_engine);
}

c10::intrusive_ptr<OcclOptions> copy(const OcclOptions& options) {
  return c10::make_intrusive<OcclOptions>(options);
}

} // namespace
} // namespace openreg::distributed

PYBIND11_MODULE(_C, m) {
  using namespace openreg::distributed;
  m.doc() = "The backend occl of torch.distributed.";
  // This module binds the base classes.
  const py::module_ base = py::module_::import("torch._C._distributed_c10d");

  py::class_<OcclOptions, c10::intrusive_ptr<OcclOptions>>(
      m, "Options", base.attr("Backend").attr("Options"))
      .def(
          py::init([](std::chrono::milliseconds timeout, bool share_memory) {
            auto options = c10::make_intrusive<OcclOptions>(timeout);
            options->share_memory = share_memory;
            return options;
          }),
          py::arg("timeout") = kBackendDefaultTimeout,
          py::arg("share_memory") = true)
      .def_readwrite("share_memory", &OcclOptions::share_memory)
      .def("__copy__", &copy)
      .def("__deepcopy__", [](const OcclOptions& self, const py::dict&) {
        return copy(self);
      });
  py::class_<OcclBackend, c10::intrusive_ptr<OcclBackend>>(
      m, "OcclBackend", base.attr("Backend"))
      .def_property_readonly("options", &OcclBackend::getBackendOptions)
      .def_property_readonly("shares_memory", &OcclBackend::shares_memory);
  m.def("register_symmetric_memory", &register_symmetric_memory);
  // Before storages are freed, which waits for their device.
  py::module_::import("atexit").attr("register")(
      py::cpp_function(&Pending::abort_all));
  m.def(
      "create",
      &create,
      py::arg("gloo"),
      py::arg("timeout"),
      py::arg("group_name"),
      py::arg("global_ranks"),
      py::arg("share_memory"));

  m.def(
      "flight_record",
      [](const std::string& reason) {
        return FlightRecord::get().to_json(reason);
      },
      py::arg("reason"),
      py::call_guard<py::gil_scoped_release>());
  m.def(
      "write_flight_record",
      [](const std::string& reason, const std::string& path) {
        return FlightRecord::get().write(reason, path);
      },
      py::arg("reason"),
      py::arg("path"),
      py::call_guard<py::gil_scoped_release>());
}
