// SPDX-License-Identifier: BSD-3-Clause
// The Python module openreg_inductor._C: what generated code calls.
#include "binding.h"
#include "graph.h"
#include "operand.h"
#include "results.h"
#include "runner.h"
#include "translated.h"

#include <torch/csrc/autograd/python_variable.h>
#include <torch/csrc/utils/pybind.h>

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
    operand = find_operand(THPVariable_Unpack(value), device, kernel, number);
  });
}

bool try_launch(const Call& call) {
  return translated([&] { launch(call); });
}

const Launcher functions{&find_operand_of, &try_launch};

/// openreg-aten's: the rule of operators, and their errors.
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
