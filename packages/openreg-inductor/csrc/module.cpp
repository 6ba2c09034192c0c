// SPDX-License-Identifier: BSD-3-Clause
// The Python module openreg_inductor._C: what generated code calls.
#include "graph.h"
#include "launch.h"
#include "results.h"
#include "translated.h"

#include <openreg/openreg.h>

#include <torch/csrc/autograd/python_variable.h>
#include <torch/csrc/utils/pybind.h>

namespace py = pybind11;

namespace openreg::inductor {
namespace {

/// Where device pointers lie, and where kernels find the same bytes.
struct AddressRange {
  const std::byte* begin;
  const std::byte* end;
  ptrdiff_t distance;
};

AddressRange load_range() {
  void* begin = nullptr;
  void* end = nullptr;
  ptrdiff_t distance = 0;
  TORCH_CHECK(
      orGetAddressRange(&begin, &end, &distance) == orSuccess,
      orGetErrorMessage());
  return {
      static_cast<const std::byte*>(begin),
      static_cast<const std::byte*>(end),
      distance};
}

bool find_operand(PyObject* value, int64_t device, Operand& operand) {
  return translated([&] {
    static const AddressRange range = load_range();
    TORCH_CHECK_TYPE(
        THPVariable_Check(value),
        "a compiled kernel expected a torch.Tensor, not ",
        Py_TYPE(value)->tp_name);
    const at::Tensor& tensor = THPVariable_Unpack(value);
    auto* address = static_cast<std::byte*>(tensor.data_ptr());
    operand = {address, tensor.nbytes(), address != nullptr};
    if (address >= range.begin && address < range.end) {
      TORCH_CHECK(
          tensor.device().index() == device,
          "a compiled kernel of device ",
          device,
          " got a tensor of ",
          tensor.device());
      operand.data = address + range.distance;
      operand.on_host = false;
    }
  });
}

using Launch = void (*)(const Call& call);

bool launch(const Call& call) {
  return translated([&] {
    // openreg-aten's: the rule of operators, and their errors.
    static const auto launch_compiled = reinterpret_cast<Launch>(
        PyCapsule_Import("openreg_aten._C.launch_compiled", 0));
    if (launch_compiled == nullptr) {
      throw python_error();
    }
    launch_compiled(call);
  });
}

const Launcher launcher{&find_operand, &launch};

} // namespace
} // namespace openreg::inductor

PYBIND11_MODULE(_C, m) {
  m.doc() = "Launches the kernels that Inductor writes for OpenReg devices.";
  m.attr("launcher") =
      py::capsule(&openreg::inductor::launcher, "openreg_inductor._C.launcher");
  openreg::inductor::add_graph_functions(m.ptr());
  openreg::inductor::add_graph_results(m.ptr());
}
