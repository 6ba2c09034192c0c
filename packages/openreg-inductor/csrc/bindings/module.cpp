// SPDX-License-Identifier: BSD-3-Clause
// The Python module openreg_inductor._C, which generated code calls.
#include "bindings/graph.h"
#include "bindings/results.h"
#include "bindings/runner.h"
#include "bindings/translated.h"
#include "launch/binding.h"
#include "launch/operand.h"

#include <torch/csrc/Exceptions.h>
#include <torch/csrc/autograd/python_variable.h>
#include <torch/csrc/utils/pybind.h>

#include <utility>
#include <vector>

namespace py = pybind11;

namespace openreg::inductor {
namespace {

bool find_operand_of(
    PyObject* value,
    int64_t device,
    const char* kernel,
    size_t number,
    Operand& operand) {
  return translated([&] {
    TORCH_CHECK_TYPE(
        THPVariable_Check(value),
        "a compiled kernel expected a torch.Tensor, not ",
        Py_TYPE(value)->tp_name);
    find_operand(THPVariable_Unpack(value), device, kernel, number, operand);
  });
}

bool try_launch(const Call& call) {
  return translated([&] { launch(call); });
}

PyObject* python_observer = nullptr; // callable, guarded by the GIL

/// Throws the observer's exception as PyTorch's python_error.
void call_observer(const Call& call, const std::vector<Observed>& operands) {
  if (!Py_IsInitialized()) {
    return;
  }
  const py::gil_scoped_acquire gil;
  if (python_observer == nullptr) {
    return;
  }
  py::list described;
  for (const Observed& each : operands) {
    described.append(
        py::make_tuple(
            py::reinterpret_steal<py::object>(THPVariable_Wrap(each.tensor)),
            each.writes));
  }
  try {
    py::reinterpret_borrow<py::function>(python_observer)(
        call.name, call.device, described);
  } catch (py::error_already_set& raised) {
    raised.restore();
    python_error error;
    error.persist();
    throw error;
  }
}

void set_observer(py::object observer) {
  PyObject* previous = std::exchange(
      python_observer, observer.is_none() ? nullptr : observer.release().ptr());
  set_observe(python_observer == nullptr ? nullptr : &call_observer);
  Py_XDECREF(previous);
}

const Launcher functions{&find_operand_of, &try_launch};

/// openreg-aten's function, which launches kernels like operators.
LaunchCompiled find_launch_compiled() {
  void* found = PyCapsule_Import("openreg_aten._C.launch_compiled", 0);
  if (found == nullptr) {
    throw py::error_already_set();
  }
  return reinterpret_cast<LaunchCompiled>(found);
}

} // namespace
} // namespace openreg::inductor

PYBIND11_MODULE(_C, m) {
  using namespace openreg::inductor;
  m.doc() = "Launches the kernels that Inductor writes for OpenReg devices.";
  set_launch(find_launch_compiled());
  m.attr("launcher") = py::capsule(&functions, "openreg_inductor._C.launcher");
  m.def(
      "set_observer",
      &set_observer,
      py::arg("observer"),
      "Sets a function of name, device and operands that sees each launch.");
  m.def(
      "register_runner",
      &register_runner,
      "Registers the runner of models that AOTInductor has compiled.");
  m.def(
      "register_eager_runner",
      &register_eager_runner,
      "Registers the runner of operators that Inductor has compiled.");
  add_graph_functions(m.ptr());
  add_graph_results(m.ptr());
}
