// SPDX-License-Identifier: BSD-3-Clause
// Python callables as stream work, the objects they keep alive, and the GIL at
// interpreter shutdown.
//
// A kernel runs on the thread that executes its stream. That thread acquires
// the GIL. Nothing in this module waits for a stream with the GIL held, so the
// two cannot block each other.
#include "base/system_thread.h"
#include "bindings/bindings.h"
#include "platform/thread.h"

#include <openreg/activity.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <system_error>
#include <thread>
#include <unordered_map>
#include <vector>

namespace openreg::python {
namespace {

using namespace std::chrono_literals;
constexpr auto kExitWait = 200ms;

unsigned long g_main_thread = 0; // where Python handles signals
std::atomic<bool> g_alive{true};
std::atomic<int> g_visitors{0}; // threads inside with_gil()
std::atomic<int> g_calls{0};    // argument blocks that hold Python objects
thread_local bool t_on_stream = false;
// The KeyboardInterrupt that Ctrl-C raised in a kernel. The waiting call raises
// it.
thread_local PyObject* t_interrupt = nullptr;

/// Runs `body`, which may acquire the GIL. CPython before 3.14 ends a thread
/// that requests the GIL during shutdown, by unwinding its stack. Destructors
/// and `catch (...)` blocks do not expect that, so the thread stays here until
/// the process ends. Objects of `body` must not need the GIL in their
/// destructors.
template <typename Body>
void park_at_exit(Body body) {
  platform::run_or_sleep(
      [](void* argument) { (*static_cast<Body*>(argument))(); }, &body);
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

/// A callable with its arguments, or objects that are only kept alive.
struct Call {
  PyObject* callable;
  PyObject* args;

  /// A null `callable` only holds `args`.
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

/// Python runs the Ctrl-C handler in whatever code the main thread executes,
/// also in a kernel that it runs during a wait. The resulting exception is
/// meant for the program, so the wait raises it at its end. If the wait is not
/// in this module, the signal is sent to Python again. On other threads the
/// exception belongs to the kernel.
void keep_interrupt(PyObject* exception, PyObject* traceback) {
  if (PyThread_get_thread_ident() != g_main_thread) {
    return;
  }
  if (t_waits == 0 || t_interrupt != nullptr) {
    PyErr_SetInterrupt();
    return;
  }
  if (traceback != nullptr) {
    PyException_SetTraceback(exception, traceback);
  }
  Py_INCREF(exception);
  t_interrupt = exception;
}

/// The text of the current Python exception, "ValueError: ...", and clears it.
std::string take_exception() {
  PyObject* type = nullptr;
  PyObject* value = nullptr;
  PyObject* traceback = nullptr;
  PyErr_Fetch(&type, &value, &traceback);
  PyErr_NormalizeException(&type, &value, &traceback);
  if (PyErr_GivenExceptionMatches(type, PyExc_KeyboardInterrupt) != 0) {
    keep_interrupt(value, traceback);
  }
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

void run(const Call& call) {
  if (call.callable == nullptr) {
    return;
  }
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

void enqueue_kernel(
    orStream_t stream,
    std::unique_ptr<Call> call,
    const char* name) {
  orLaunchInfo info = OPENREG_LAUNCH_INFO_INIT;
  info.name = name;
  const orError_t error = without_gil([&] {
    return orLaunchKernelWithInfo(
        stream,
        [](void* block) { run(*static_cast<Call*>(block)); },
        call.get(),
        [](void* block) { delete static_cast<Call*>(block); },
        &info);
  });
  if (error == orSuccess) {
    static_cast<void>(call.release()); // the stream's from here on
  }
  check(error);
}

void enqueue_host_call(orStream_t stream, std::unique_ptr<Call> call) {
  const orError_t error = without_gil([&] {
    return orLaunchHostFunc(
        stream,
        [](void* block) { run(*static_cast<Call*>(block)); },
        call.get(),
        [](void* block) { delete static_cast<Call*>(block); });
  });
  if (error == orSuccess) {
    static_cast<void>(call.release()); // the stream's from here on
  }
  check(error);
}

/// An exit handler of Python: kernels may enter Python until then.
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
    // Not leaks: the arguments of work that never ran, and of daemon threads.
    nb::set_leak_warnings(false);
  }
}

} // namespace

void check_interrupt() {
  if (PyObject* exception = std::exchange(t_interrupt, nullptr)) {
    PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(exception)), exception);
    Py_DECREF(exception);
    throw nb::python_error();
  }
}

void take_gil_back(PyThreadState* state) {
  park_at_exit([&] { PyEval_RestoreThread(state); });
}

void launch(orStream_t stream, nb::handle callable, nb::handle args) {
  enqueue_kernel(
      stream, std::make_unique<Call>(callable, args), name_of_kernel(callable));
}

void launch_host(orStream_t stream, nb::handle callable, nb::handle args) {
  enqueue_host_call(stream, std::make_unique<Call>(callable, args));
}

void hold(orStream_t stream, nb::handle objects) {
  enqueue_host_call(stream, std::make_unique<Call>(nb::handle(), objects));
}

std::shared_ptr<void> share(nb::handle object) {
  return std::make_shared<Call>(nb::handle(), object);
}

void release_after_work(std::function<orError_t()> release) noexcept {
  if (!g_alive) {
    return; // at the end a kernel may never return; the process frees all
  }
  // A thread that runs or releases a Python kernel must not wait.
  const orError_t error =
      t_on_stream ? orErrorNotPermitted : without_gil(release);
  if (t_interrupt != nullptr) { // it cannot be raised here
    Py_CLEAR(t_interrupt);
    PyErr_SetInterrupt();
  }
  std::string text;
  switch (error) {
    case orSuccess:
    case orErrorInitialization: // a forked child: it is the parent's
      return;
    case orErrorNotPermitted:
    case orErrorTimeout:
      try {
        start_thread([release = std::move(release)] {
          while (release() == orErrorTimeout) { // each waits for its limit
          }
        });
        return;
      } catch (const std::system_error& failure) {
        text = failure.what(); // the memory is not released
      }
      break;
    default:
      text = orGetErrorMessage();
  }
  const nb::error_scope pending;
  PyErr_SetString(PyExc_RuntimeError, text.c_str());
  PyErr_WriteUnraisable(nullptr);
}

void init_kernel() {
  g_main_thread = nb::cast<unsigned long>(
      nb::module_::import_("threading").attr("main_thread")().attr("ident"));
  nb::module_::import_("atexit").attr("register")(
      nb::cpp_function(&leave_python));
}

} // namespace openreg::python
