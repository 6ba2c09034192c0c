// SPDX-License-Identifier: BSD-3-Clause
// What the parts of openreg_runtime._C share: the objects, errors, and the GIL.
#pragma once

#include <openreg/openreg.h>

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/variant.h>

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <variant>

namespace openreg::python {

namespace nb = nanobind;

struct Device {
  int index = 0;
};

struct Stream {
  orStream_t handle = nullptr;
  bool owned = false; // not for the default stream of a device

  Stream(orStream_t stream, bool owner) : handle(stream), owned(owner) {}
  Stream(Stream&& other) noexcept
      : handle(other.handle), owned(std::exchange(other.owned, false)) {}
  Stream& operator=(Stream&&) = delete;
  ~Stream() {
    if (owned) {
      static_cast<void>(orStreamDestroy(handle));
    }
  }
};

struct Event {
  orEvent_t handle = nullptr;

  explicit Event(unsigned int flags);
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  ~Event() {
    static_cast<void>(orEventDestroy(handle));
  }
};

/// A device as Python callers name it; nothing is the current one.
using DeviceLike = std::optional<std::variant<Device, int>>;
int index_of(const DeviceLike& device);

/// Makes a device current for this thread as long as the scope lasts.
class DeviceScope {
 public:
  explicit DeviceScope(int device);
  DeviceScope(const DeviceScope&) = delete;
  DeviceScope& operator=(const DeviceScope&) = delete;
  ~DeviceScope();

 private:
  int previous_ = 0;
};

// ---- errors ----------------------------------------------------------------

/// Throws OpenRegError.
[[noreturn]] void raise(orError_t error, const char* message);
/// Throws OpenRegError with the text of this thread's last failure.
void check(orError_t error);

// ---- the GIL ---------------------------------------------------------------

/// Takes the GIL back, or sleeps for good if the interpreter shuts down:
/// CPython would end the thread there, which C++ frames do not survive.
void take_gil_back(PyThreadState* state);

/// Runs `body` without the GIL; every call that can wait or run kernels does.
template <typename Body>
auto without_gil(Body&& body) {
  PyThreadState* state = PyEval_SaveThread();
  auto result = std::forward<Body>(body)();
  take_gil_back(state);
  return result;
}

/// False from the moment that the interpreter begins to shut down.
bool interpreter_alive() noexcept;
/// True while this thread runs or releases a Python kernel: it must not wait.
bool on_stream() noexcept;

/// The handle of a stream that the caller may leave out.
inline orStream_t handle_of(const Stream* stream) {
  return stream != nullptr ? stream->handle : nullptr;
}

/// Runs `callable(*args)` in the order of `stream`.
void launch(orStream_t stream, nb::handle callable, nb::handle args);
/// Keeps `objects` alive until the work that `stream` has now is done.
void hold(orStream_t stream, nb::handle objects);

// ---- one for each object ---------------------------------------------------

void init_device(nb::module_& m);
void init_stream(nb::module_& m);
void init_event(nb::module_& m);
void init_memory(nb::module_& m);
void init_kernel();

} // namespace openreg::python
