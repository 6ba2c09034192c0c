// SPDX-License-Identifier: BSD-3-Clause
// Shared parts of openreg_runtime._C: the objects, errors and the GIL.
#pragma once

#include <openreg/openreg.h>

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/variant.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>

namespace openreg::python {

namespace nb = nanobind;

struct Device {
  int index = 0;
};

/// A device as Python callers name it; none means the current device.
using DeviceName = std::variant<Device, int>;
using DeviceLike = std::optional<DeviceName>;
int index_of(const DeviceLike& device);

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

struct Graph {
  orGraph_t handle = nullptr;

  explicit Graph(orGraph_t graph) : handle(graph) {}
  Graph(Graph&& other) noexcept
      : handle(std::exchange(other.handle, nullptr)) {}
  Graph& operator=(Graph&&) = delete;
  ~Graph() {
    if (handle != nullptr) {
      static_cast<void>(orGraphDestroy(handle));
    }
  }
};

struct Event {
  orEvent_t handle = nullptr;

  explicit Event(orEvent_t event) : handle(event) {}
  Event(Event&& other) noexcept
      : handle(std::exchange(other.handle, nullptr)) {}
  Event& operator=(Event&&) = delete;
  ~Event() {
    if (handle != nullptr) {
      static_cast<void>(orEventDestroy(handle));
    }
  }
};

/// Makes a device current for this thread during the scope.
class DeviceScope {
 public:
  explicit DeviceScope(int device);
  DeviceScope(const DeviceScope&) = delete;
  DeviceScope& operator=(const DeviceScope&) = delete;
  ~DeviceScope();

 private:
  int previous_ = 0;
};

/// The number of resets of a device: a reset frees everything it held.
std::uint64_t resets_of(int device) noexcept;

// ---- errors ----------------------------------------------------------------

/// Throws OpenRegError.
[[noreturn]] void raise(orError_t error, const char* message);
/// Throws OpenRegError with the text of this thread's last failure, or the
/// exception that Ctrl-C raised in a kernel that this thread ran during the
/// wait.
void check(orError_t error);
/// Throws the exception of Ctrl-C, if there is one.
void check_interrupt();
/// Throws ValueError for a negative size; `what` names function and argument.
std::size_t checked_size(const char* what, std::int64_t size);
/// Writes the bytes of an IPC handle. Throws ValueError for a wrong length.
void checked_handle(
    const char* function,
    const nb::bytes& bytes,
    unsigned char (&handle)[OPENREG_IPC_HANDLE_SIZE]);

// ---- the GIL ---------------------------------------------------------------

/// Reacquires the GIL, or sleeps forever if the interpreter shuts down: CPython
/// would end the thread there, which C++ frames do not survive.
void take_gil_back(PyThreadState* state);

/// The depth of without_gil() on this thread, which may then run Python
/// kernels.
inline thread_local int t_waits = 0;

/// Runs `body` without the GIL. Every call that can wait or run kernels uses
/// it.
template <typename Body>
auto without_gil(Body&& body) {
  PyThreadState* state = PyEval_SaveThread();
  ++t_waits;
  auto result = std::forward<Body>(body)();
  --t_waits;
  take_gil_back(state);
  return result;
}

/// The handle of a stream that the caller may leave out.
inline orStream_t handle_of(const Stream* stream) {
  return stream != nullptr ? stream->handle : nullptr;
}

/// Enqueues `callable(*args)` on `stream` as a kernel.
void launch(orStream_t stream, nb::handle callable, nb::handle args);
/// A kernel's name in activity records, valid forever; null while recording is
/// off.
const char* name_of_kernel(nb::handle callable);
/// Enqueues `callable(*args)` as a host function.
void launch_host(orStream_t stream, nb::handle callable, nb::handle args);
/// Keeps `objects` alive until the present work of `stream` has finished.
void hold(orStream_t stream, nb::handle objects);
/// `object` for threads without the GIL: the last copy releases it.
std::shared_ptr<void> share(nb::handle object);
/// Calls `release`, which frees something after the work that uses it:
/// directly, or on a separate thread if this thread must not wait.
void release_after_work(std::function<orError_t()> release) noexcept;

// ---- one for each object ---------------------------------------------------

void init_device(nb::module_& m);
void init_stream(nb::module_& m);
void init_event(nb::module_& m);
void init_graph(nb::module_& m);
void init_buffer(nb::module_& m);
void init_host_memory(nb::module_& m);
void init_failures(nb::module_& m);
void init_settings(nb::module_& m);
void init_activity(nb::module_& m);
void init_kernel();

} // namespace openreg::python
