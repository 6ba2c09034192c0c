// SPDX-License-Identifier: BSD-3-Clause
// Allocations and the current device of a compiled graph.
#include "bindings/graph.h"

#include "bindings/translated.h"

#include <ATen/ops/empty_strided.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <c10/util/SmallVector.h>
#include <torch/csrc/Dtype.h>
#include <torch/csrc/autograd/python_variable.h>
#include <torch/csrc/utils/python_numbers.h>

#include <array>
#include <device_type.h>
#include <new>
#include <utility>

namespace openreg::inductor {
namespace {

using Numbers = c10::SmallVector<int64_t, 5>;

Numbers parse_tuple(PyObject* value) {
  TORCH_CHECK_TYPE(
      PyTuple_Check(value),
      "empty_strided: expected a tuple of ints, not ",
      Py_TYPE(value)->tp_name);
  Numbers numbers;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(value); ++i) {
    numbers.push_back(THPUtils_unpackLong(PyTuple_GET_ITEM(value, i)));
  }
  return numbers;
}

c10::Device device_of(PyObject* index) {
  return {
      device_type(), static_cast<c10::DeviceIndex>(THPUtils_unpackLong(index))};
}

/// empty_strided(size, stride, dtype, device index)
PyObject*
empty_strided(PyObject* /*module*/, PyObject* const* args, Py_ssize_t count) {
  PyObject* result = nullptr;
  translated([&] {
    TORCH_CHECK_TYPE(
        count == 4 && THPDtype_Check(args[2]),
        "empty_strided: expected size, stride, dtype and device index");
    const Numbers size = parse_tuple(args[0]);
    const Numbers stride = parse_tuple(args[1]);
    const auto options =
        at::TensorOptions(device_of(args[3]))
            .dtype(reinterpret_cast<THPDtype*>(args[2])->scalar_type);
    at::Tensor made;
    {
      const pybind11::gil_scoped_release released; // it may wait for a stream
      made = at::empty_strided(size, stride, options);
    }
    result = THPVariable_Wrap(std::move(made));
  });
  return result;
}

/// Makes a device current within a `with` statement. An object is entered only
/// once at a time.
struct PyDeviceGuard {
  PyObject_HEAD c10::Device device;
  c10::Device previous;
};

c10::Device exchange(c10::Device device) {
  const auto* guard = c10::impl::getDeviceGuardImpl(device.type());
  return guard->exchangeDevice(device);
}

PyObject* new_guard(PyTypeObject* type, PyObject* args, PyObject* /*kwargs*/) {
  PyObject* self = nullptr;
  translated([&] {
    TORCH_CHECK_TYPE(
        PyTuple_GET_SIZE(args) == 1, "DeviceGuard: expected a device index");
    const c10::Device device = device_of(PyTuple_GET_ITEM(args, 0));
    self = type->tp_alloc(type, 0);
    if (self == nullptr) {
      throw python_error();
    }
    auto* guard = reinterpret_cast<PyDeviceGuard*>(self);
    new (&guard->device) c10::Device(device);
    new (&guard->previous) c10::Device(device);
  });
  return self;
}

PyObject* enter(PyObject* self, PyObject* /*unused*/) {
  auto* guard = reinterpret_cast<PyDeviceGuard*>(self);
  return translated([&] { guard->previous = exchange(guard->device); })
      ? Py_NewRef(self)
      : nullptr;
}

PyObject* exit(PyObject* self, PyObject* const* /*args*/, Py_ssize_t /*n*/) {
  auto* guard = reinterpret_cast<PyDeviceGuard*>(self);
  return translated([&] { exchange(guard->previous); }) ? Py_NewRef(Py_False)
                                                        : nullptr;
}

PyObject* make_guard_type() {
  static std::array<PyMethodDef, 3> methods{{
      {"__enter__", &enter, METH_NOARGS, nullptr},
      {"__exit__",
       reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(&exit)),
       METH_FASTCALL,
       nullptr},
      {},
  }};
  static std::array<PyType_Slot, 3> slots{{
      {Py_tp_new, reinterpret_cast<void*>(&new_guard)},
      {Py_tp_methods, methods.data()},
      {},
  }};
  static PyType_Spec spec{
      "openreg_inductor._C.DeviceGuard",
      sizeof(PyDeviceGuard),
      0,
      Py_TPFLAGS_DEFAULT,
      slots.data()};
  return PyType_FromSpec(&spec);
}

} // namespace

void add_graph_functions(PyObject* module) {
  static std::array<PyMethodDef, 2> functions{{
      {"empty_strided",
       reinterpret_cast<PyCFunction>(
           reinterpret_cast<void (*)()>(&empty_strided)),
       METH_FASTCALL,
       "A new device tensor: size, stride, dtype and device index."},
      {},
  }};
  THPObjectPtr type(make_guard_type());
  if (type.get() == nullptr ||
      PyModule_AddFunctions(module, functions.data()) < 0 ||
      PyModule_AddObjectRef(module, "DeviceGuard", type.get()) < 0) {
    throw python_error();
  }
}

} // namespace openreg::inductor
