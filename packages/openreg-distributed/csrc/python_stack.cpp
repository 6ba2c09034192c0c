// SPDX-License-Identifier: BSD-3-Clause
// Reads the frames of the interpreter.
#include "python_stack.h"

#include <pybind11/pybind11.h>
#include <unordered_map>
#include <utility>

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

/// What was found out about a code object, which the frames of each call of it
/// share.
struct Known {
  std::shared_ptr<const Code> code;
  std::unordered_map<int, int> lines; // by the offset of the instruction
};

/// Those of code objects that are alive. The GIL guards it.
std::unordered_map<PyObject*, Known>& known() {
  static auto* value = new std::unordered_map<PyObject*, Known>;
  return *value;
}

Known& known_of(const py::object& code) {
  const auto [found, is_new] = known().try_emplace(code.ptr());
  Known& entry = found->second;
  if (is_new) {
    const auto* fields = reinterpret_cast<const PyCodeObject*>(code.ptr());
    entry.code = std::make_shared<const Code>(
        Code{text_of(fields->co_qualname), text_of(fields->co_filename)});
    // This may run finalizers, which may come here again.
    py::weakref(code, py::cpp_function([key = code.ptr()](py::handle weak) {
                  known().erase(key);
                  weak.dec_ref();
                }))
        .release();
  }
  return entry;
}

} // namespace

Stack python_stack() {
  // A thread without Python need not wait for the GIL. Those of autograd are
  // not such ones, so that a collective in a hook of a backward pass waits for
  // it, as it does for the stacks that NCCL's flight recorder takes.
  if (PyGILState_GetThisThreadState() == nullptr) {
    return nullptr;
  }
  std::vector<Frame> frames;
  const py::gil_scoped_acquire gil;
  auto frame = py::reinterpret_steal<py::object>(
      reinterpret_cast<PyObject*>(PyThreadState_GetFrame(PyThreadState_Get())));
  while (frame && frames.size() < kMostFrames) {
    auto* raw = reinterpret_cast<PyFrameObject*>(frame.ptr());
    const auto code = py::reinterpret_steal<py::object>(
        reinterpret_cast<PyObject*>(PyFrame_GetCode(raw)));
    Known& found = known_of(code);
    const auto [line, is_new] = found.lines.try_emplace(PyFrame_GetLasti(raw));
    if (is_new) {
      line->second = PyFrame_GetLineNumber(raw);
    }
    frames.push_back({found.code, line->second});
    frame = py::reinterpret_steal<py::object>(
        reinterpret_cast<PyObject*>(PyFrame_GetBack(raw)));
  }
  return std::make_shared<const std::vector<Frame>>(std::move(frames));
}

} // namespace openreg::distributed
