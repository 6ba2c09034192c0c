// SPDX-License-Identifier: BSD-3-Clause
// Reads the frames of the interpreter.
#include "python_stack.h"

#include <pybind11/pybind11.h>

namespace py = pybind11;

namespace openreg::distributed {
namespace {

constexpr size_t kMostFrames = 32;

std::string text_of(PyObject* text) {
  const char* utf8 = PyUnicode_AsUTF8(text);
  if (utf8 == nullptr) {
    PyErr_Clear(); // a file name of other bytes
    return "?";
  }
  return utf8;
}

} // namespace

std::vector<Frame> python_stack() {
  std::vector<Frame> frames;
  // A thread without Python need not wait for the GIL. Those of autograd are
  // not such ones, so that a collective in a hook of a backward pass waits for
  // it, as it does for the stacks that NCCL's flight recorder takes.
  if (PyGILState_GetThisThreadState() == nullptr) {
    return frames;
  }
  const py::gil_scoped_acquire gil;
  auto frame = py::reinterpret_steal<py::object>(
      reinterpret_cast<PyObject*>(PyThreadState_GetFrame(PyThreadState_Get())));
  while (frame && frames.size() < kMostFrames) {
    auto* raw = reinterpret_cast<PyFrameObject*>(frame.ptr());
    const auto code = py::reinterpret_steal<py::object>(
        reinterpret_cast<PyObject*>(PyFrame_GetCode(raw)));
    const auto* fields = reinterpret_cast<PyCodeObject*>(code.ptr());
    frames.push_back(
        {text_of(fields->co_qualname),
         text_of(fields->co_filename),
         PyFrame_GetLineNumber(raw)});
    frame = py::reinterpret_steal<py::object>(
        reinterpret_cast<PyObject*>(PyFrame_GetBack(raw)));
  }
  return frames;
}

} // namespace openreg::distributed
