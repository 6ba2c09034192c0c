// SPDX-License-Identifier: BSD-3-Clause
// Python callables as kernels, and the GIL at the end of the interpreter.
//
// A kernel runs on the thread that executes its stream, which takes the GIL for
// it. Nothing in this module waits for a stream with the GIL held, so the two
// can not block each other.
#include "bindings.h"

#include <atomic>
#include <chrono>
#include <cxxabi.h>
#include <memory>
#include <stdexcept>
#include <thread>
#include <unistd.h>

namespace openreg::python {
namespace {

using namespace std::chrono_literals;
constexpr auto kExitWait = 200ms;

std::atomic<bool> g_alive{true};
std::atomic<int> g_visitors{0}; // threads inside with_gil()
std::atomic<int> g_calls{0};    // argument blocks that hold Python objects
thread_local bool t_on_stream = false;

/// Runs `body`, which may take the GIL. CPython before 3.14 ends a thread that
/// asks for the GIL of an interpreter that shuts down, by unwinding its stack.
/// Neither destructors nor `catch (...)` on the way are made for that, so the
/// thread stays here until the process is gone. Objects of `body` must not need
/// the GIL in their destructors.
template <typename Body>
void park_at_exit(Body&& body) {
  try {
    std::forward<Body>(body)();
  } catch (const abi::__forced_unwind&) {
    for (;;) {
      pause();
    }
  }
}

/// Runs `body` with the GIL; false if the interpreter is gone. `body` must not
/// throw.
template <typename Body>
bool with_gil(Body&& body) {
  ++g_visitors;
  const bool alive = g_alive;
  if (alive) {
    park_at_exit([&] {
      const PyGILState_STATE state = PyGILState_Ensure();
      const bool outer = std::exchange(t_on_stream, true);
      body();
      t_on_stream = outer;
      PyGILState_Release(state);
    });
  }
  --g_visitors;
  return alive;
}

/// A callable with its arguments, or objects that are only to be held.
struct Call {
  PyObject* callable;
  PyObject* args;

  Call(nb::handle callable_, nb::handle args_)
      : callable(callable_.inc_ref().ptr()), args(args_.inc_ref().ptr()) {
    ++g_calls;
  }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;
  ~Call() {
    // After the interpreter has ended nothing is left to release.
    with_gil([&] {
      Py_XDECREF(callable);
      Py_DECREF(args);
      --g_calls;
    });
  }
};

/// The text of the current Python exception, "ValueError: ...", and clears it.
std::string take_exception() {
  PyObject* type = nullptr;
  PyObject* value = nullptr;
  PyObject* traceback = nullptr;
  PyErr_Fetch(&type, &value, &traceback);
  PyErr_NormalizeException(&type, &value, &traceback);
  std::string text = reinterpret_cast<PyTypeObject*>(type)->tp_name;
  PyObject* message = value != nullptr ? PyObject_Str(value) : nullptr;
  const char* utf8 = message != nullptr ? PyUnicode_AsUTF8(message) : nullptr;
  if (utf8 != nullptr && *utf8 != '\0') {
    text.append(": ").append(utf8);
  }
  PyErr_Clear();
  Py_XDECREF(message);
  Py_XDECREF(type);
  Py_XDECREF(value);
  Py_XDECREF(traceback);
  return text;
}

void run(void* block) {
  const auto& call = *static_cast<Call*>(block);
  std::string failure;
  const bool ran = with_gil([&] {
    PyObject* result = PyObject_Call(call.callable, call.args, nullptr);
    if (result == nullptr) {
      failure = take_exception();
    }
    Py_XDECREF(result);
  });
  if (!ran) {
    failure = "the interpreter is shutting down";
  }
  if (!failure.empty()) {
    throw std::runtime_error(failure);
  }
}

void release(void* block) {
  delete static_cast<Call*>(block);
}

void enqueue(orStream_t stream, orKernel_t kernel, std::unique_ptr<Call> call) {
  check(without_gil(
      [&] { return orLaunchKernel(stream, kernel, call.get(), release); }));
  static_cast<void>(call.release()); // the stream's from here on
}

/// Runs while Python's own exit handlers do, the last time that a kernel may
/// enter Python.
void leave_python() {
  g_alive = false;
  without_gil([] {
    const auto end = std::chrono::steady_clock::now() + kExitWait;
    while (g_visitors > 0 && std::chrono::steady_clock::now() < end) {
      std::this_thread::sleep_for(1ms);
    }
    return true;
  });
  const auto threads =
      nb::cast<int>(nb::module_::import_("threading").attr("active_count")());
  if (g_calls > 0 || threads > 1) {
    // No leak: work that never ran keeps its arguments, daemon threads theirs.
    nb::set_leak_warnings(false);
  }
}

} // namespace

void take_gil_back(PyThreadState* state) {
  park_at_exit([&] { PyEval_RestoreThread(state); });
}

bool interpreter_alive() noexcept {
  return g_alive;
}

bool on_stream() noexcept {
  return t_on_stream;
}

void launch(orStream_t stream, nb::handle callable, nb::handle args) {
  enqueue(stream, run, std::make_unique<Call>(callable, args));
}

void hold(orStream_t stream, nb::handle objects) {
  enqueue(
      stream,
      [](void*) {},
      std::make_unique<Call>(nb::handle(nb::none()), objects));
}

void init_kernel() {
  nb::module_::import_("atexit").attr("register")(
      nb::cpp_function(&leave_python));
}

} // namespace openreg::python
