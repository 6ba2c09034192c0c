// SPDX-License-Identifier: BSD-3-Clause
// The Python function of a generated kernel: it finds the arguments and hands
// them to the launcher. The text follows the kernel in its source, and
// launch.h.
#pragma once

#include <exception>
#include <stdexcept>
#include <string>
#include <tuple>
#include <type_traits>

#if defined(_OPENMP)
#include <omp.h>
#endif

namespace openreg::inductor {

inline const Launcher* launcher = nullptr; // set when the module is imported

/// An exception of Python's is set.
struct PythonError {};

/// The arguments of one call of the Python function: the device's index, and
/// those of the kernel.
struct Arguments {
  PyObject* const* values;
  int64_t device;
  size_t bytes = 0;     // of all tensors
  bool on_host = false; // the kernel reads or writes memory of the host
};

/// A tensor that the kernel only reads. The number of one with a single element
/// in memory of the host, such as torch.tensor(0.5), is taken at once, so that
/// the kernel need not run before the caller goes on.
template <typename T>
struct Input {
  const T* data;
  T number{};
  bool is_number = false;

  operator const T*() const {
    return is_number ? &number : data;
  }
};

template <typename T>
auto parse(Arguments& arguments, size_t number) {
  PyObject* value = arguments.values[number];
  if constexpr (std::is_pointer_v<T>) {
    Operand operand{};
    if (!launcher->find_operand(value, arguments.device, operand)) {
      throw PythonError();
    }
    arguments.bytes += operand.bytes;
    using Element = std::remove_pointer_t<T>;
    auto* data = static_cast<T>(operand.data);
    if constexpr (std::is_const_v<Element>) {
      Input<std::remove_const_t<Element>> input{data};
      if (operand.on_host && operand.bytes == sizeof(Element)) {
        input.number = *data;
        input.is_number = true;
      } else {
        arguments.on_host |= operand.on_host;
      }
      return input;
    } else {
      arguments.on_host |= operand.on_host;
      return data;
    }
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

/// The number of threads that the caller would have, for the one that runs the
/// kernel: a reduction has as many parts.
class Threads {
 public:
#if defined(_OPENMP)
  explicit Threads(int count) : previous_(omp_get_max_threads()) {
    set(count);
  }
  ~Threads() {
    set(previous_);
  }
  static int count() {
    return omp_get_max_threads();
  }
#else
  explicit Threads(int /*count*/) {}
  static int count() {
    return 1;
  }
#endif
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;

 private:
#if defined(_OPENMP)
  static void set(int count) {
    if (count != omp_get_max_threads()) {
      omp_set_num_threads(count);
    }
  }
  int previous_;
#endif
};

/// The kernel's arguments, at addresses for kernels.
template <auto Kernel, typename... Args>
struct Bound {
  std::tuple<Args...> args;
  int threads = Threads::count();

  static void run(void* self) {
    const auto& bound = *static_cast<const Bound*>(self);
    const Threads scope(bound.threads);
    std::apply(Kernel, bound.args);
  }
  static void* copy(const void* self) {
    return new Bound(*static_cast<const Bound*>(self));
  }
  static void destroy(void* self) noexcept {
    delete static_cast<Bound*>(self);
  }
};

template <auto Kernel, typename... Args>
PyObject*
launch(const char* name, bool may_raise, Arguments& arguments, Args... args) {
  // In braces, so that the arguments are parsed before this is called.
  using Each = Bound<Kernel, Args...>;
  Each bound{{args...}};
  Call call;
  call.device = arguments.device;
  call.name = name;
  call.bytes = arguments.bytes;
  call.may_raise = may_raise;
  call.must_run = arguments.on_host;
  call.run = &Each::run;
  call.args = &bound;
  call.copy = &Each::copy;
  call.destroy = &Each::destroy;
  if (!launcher->launch(call)) {
    throw PythonError();
  }
  Py_RETURN_NONE;
}

/// Runs the body of the Python function.
template <typename Body>
PyObject* guarded(
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
    Arguments arguments{values, 0};
    arguments.device = parse<int64_t>(arguments, 0);
    return body(arguments);
  } catch (const PythonError&) {
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
  }
  return nullptr;
}

} // namespace openreg::inductor
