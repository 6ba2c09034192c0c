// SPDX-License-Identifier: BSD-3-Clause
// The graph trace functions of openreg_aten._C.
#include "device/trace.h"

#include "bindings/bindings.h"
#include "stream/capture.h"

#include <cstdint>
#include <utility>

namespace nb = nanobind;

namespace openreg::aten {
namespace {

PyObject* python_listener = nullptr; // callable, guarded by the GIL

const char* name_of(GraphEvent event) {
  switch (event) {
    case GraphEvent::kCaptureBegun:
      return "capture begun";
    case GraphEvent::kCaptureEnded:
      return "capture ended";
    case GraphEvent::kCaptureFailed:
      return "capture failed";
    case GraphEvent::kReplay:
      return "replay";
    case GraphEvent::kReset:
      return "reset";
  }
  return "";
}

/// Converts exceptions of the listener to PyTorch's python_error, which the
/// PyTorch bindings raise again.
void call_listener(GraphEvent event, uint64_t capture, orStream_t stream) {
  if (!Py_IsInitialized()) {
    return;
  }
  const nb::gil_scoped_acquire gil;
  const nb::error_scope pending;
  if (python_listener == nullptr) {
    return;
  }
  const auto listener = nb::borrow(python_listener);
  try {
    listener(name_of(event), capture, reinterpret_cast<uintptr_t>(stream));
  } catch (nb::python_error& raised) {
    if (event == GraphEvent::kReset) { // a graph may be destroyed on any thread
      raised.discard_as_unraisable(listener);
      return;
    }
    raised.restore();
    python_error error;
    error.persist();
    throw error;
  }
}

} // namespace

void define_trace(nb::module_& m) {
  m.def(
      "capture_id",
      [](uintptr_t stream) {
        return capture_id(reinterpret_cast<orStream_t>(stream));
      },
      nb::arg("stream"));
  m.def(
      "set_graph_listener",
      [](nb::object listener) {
        PyObject* previous = std::exchange(
            python_listener,
            listener.is_none() ? nullptr : listener.release().ptr());
        set_graph_listener(
            python_listener == nullptr ? nullptr : &call_listener);
        Py_XDECREF(previous);
      },
      nb::arg("listener").none());
}

} // namespace openreg::aten
