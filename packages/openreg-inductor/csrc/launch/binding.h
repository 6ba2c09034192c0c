// SPDX-License-Identifier: BSD-3-Clause
// The Python function of a generated kernel, which parses the arguments and
// passes them to the launcher. This text follows the kernel and bound.h in a
// source.
#pragma once

#include "launch/bound.h"

#include <Python.h>

#include <exception>
#include <stdexcept>
#include <string>

namespace openreg::inductor {

/// The capsule openreg_inductor._C.launcher. Both functions need the GIL. On
/// failure they set a Python exception and return false.
struct Launcher {
  /// Checks the tensor argument `number` of `kernel`.
  bool (*find_operand)(
      PyObject* tensor,
      int64_t device,
      const char* kernel,
      size_t number,
      Operand& operand);
  /// Runs the kernel in stream order or enqueues it.
  bool (*launch)(const Call& call);
};

inline const Launcher* launcher = nullptr; // set when the module is imported

/// Thrown when a Python exception is set.
struct PythonError {};

/// The arguments of a call of the Python function: the device's index and the
/// kernel's arguments.
struct Arguments {
  const char* kernel; // its name
  PyObject* const* values;
  int64_t device;
  Facts facts;
};

template <typename T>
auto parse(Arguments& arguments, size_t number) {
  PyObject* value = arguments.values[number];
  if constexpr (std::is_pointer_v<T>) {
    Operand operand = unbound<T>();
    if (!launcher->find_operand(
            value,
            arguments.device,
            arguments.kernel,
            arguments.facts.tensors + 1,
            operand)) {
      throw PythonError();
    }
    return bind<T>(operand, arguments.facts);
  } else if constexpr (std::is_floating_point_v<T>) {
    const double found = PyFloat_AsDouble(value);
    if (found == -1.0 && PyErr_Occurred() != nullptr) {
      throw PythonError();
    }
    return static_cast<T>(found);
  } else {
    static_assert(std::is_integral_v<T>, "a pointer or a number");
    const long long found = PyLong_AsLongLong(value);
    if (found == -1 && PyErr_Occurred() != nullptr) {
      throw PythonError();
    }
    return static_cast<T>(found);
  }
}

template <auto Kernel, typename... Args>
PyObject* launch(bool may_raise, Arguments& arguments, Args... args) {
  // Braces guarantee that the arguments are parsed before this call.
  Bound<Kernel, Args...> bound{{args...}};
  const Call call = bound.describe(
      arguments.kernel, may_raise, arguments.device, arguments.facts);
  if (!launcher->launch(call)) {
    throw PythonError();
  }
  Py_RETURN_NONE;
}

/// Runs the body of the Python function.
template <typename Body>
PyObject* guarded(
    const char* kernel,
    PyObject* const* values,
    Py_ssize_t given,
    Py_ssize_t expected,
    const Body& body) noexcept {
  try {
    if (given != expected) {
      throw std::runtime_error(
          "a compiled kernel takes " + std::to_string(expected) +
          " arguments, but " + std::to_string(given) + " were given");
    }
    Arguments arguments{kernel, values, 0, {}};
    arguments.device = parse<int64_t>(arguments, 0);
    return body(arguments);
  } catch (const PythonError&) {
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
  }
  return nullptr;
}

} // namespace openreg::inductor
