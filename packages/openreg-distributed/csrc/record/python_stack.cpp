// SPDX-License-Identifier: BSD-3-Clause
// Reads the interpreter's frames. A program makes its calls at few places, so
// the text of each place is created only once.
#include "record/python_stack.h"

#include <algorithm>
#include <array>
#include <functional>
#include <pybind11/pybind11.h>
#include <span>
#include <unordered_map>
#include <utility>

namespace py = pybind11;

namespace openreg::distributed {
namespace {

constexpr size_t kMostFrames = 32;
constexpr size_t kMostStacks = 1024;

struct Place {
  PyObject* code;
  int instruction; // its offset

  bool operator==(const Place&) const = default;
};
using Places = std::span<const Place>;

struct Hash {
  using is_transparent = void;
  size_t operator()(Places places) const {
    size_t sum = places.size();
    for (const Place& place : places) {
      sum = sum * 31 + std::hash<PyObject*>()(place.code) +
          static_cast<size_t>(place.instruction);
    }
    return sum;
  }
};

struct Equal {
  using is_transparent = void;
  bool operator()(Places one, Places other) const {
    return std::ranges::equal(one, other);
  }
};

/// Stacks by their places. Keeps the code objects alive, because their
/// addresses could be reused. The GIL guards it.
using Stacks = std::unordered_map<std::vector<Place>, Stack, Hash, Equal>;

Stacks& known() {
  static auto* value = new Stacks;
  return *value;
}

/// Reads this thread's places, innermost first, as many as fit. Only the frames
/// keep the code objects alive.
size_t read_places(std::span<Place> places) {
  size_t count = 0;
  PyFrameObject* frame = PyThreadState_GetFrame(PyThreadState_Get());
  while (frame != nullptr && count < places.size()) {
    PyCodeObject* code = PyFrame_GetCode(frame);
    places[count++] = {
        reinterpret_cast<PyObject*>(code), PyFrame_GetLasti(frame)};
    Py_DECREF(code);
    PyFrameObject* back = PyFrame_GetBack(frame);
    Py_DECREF(frame);
    frame = back;
  }
  Py_XDECREF(frame);
  return count;
}

std::string text_of(PyObject* text) {
  const char* utf8 = PyUnicode_AsUTF8(text);
  if (utf8 == nullptr) {
    PyErr_Clear(); // a file name that is not UTF-8
    return "?";
  }
  return utf8;
}

Stack text_of(Places places) {
  std::vector<Frame> frames;
  for (const Place& place : places) {
    auto* code = reinterpret_cast<PyCodeObject*>(place.code);
    frames.push_back(
        {text_of(code->co_qualname),
         text_of(code->co_filename),
         PyCode_Addr2Line(code, place.instruction)});
  }
  return std::make_shared<const std::vector<Frame>>(std::move(frames));
}

void keep(Places places, const Stack& stack) {
  Stacks dropped;
  if (known().size() == kMostStacks) {
    dropped.swap(known());
  }
  const auto [entry, is_new] =
      known().emplace(std::vector<Place>(places.begin(), places.end()), stack);
  if (is_new) {
    for (const Place& place : entry->first) {
      Py_INCREF(place.code);
    }
  }
  // Destroying code may run code that calls this function again.
  for (const auto& [old, text] : dropped) {
    for (const Place& place : old) {
      Py_DECREF(place.code);
    }
  }
}

} // namespace

Stack python_stack() {
  // A thread without Python need not wait for the GIL. Autograd threads have
  // Python, so a collective in a hook of a backward pass waits for it, as with
  // the stacks of NCCL's flight recorder.
  if (PyGILState_GetThisThreadState() == nullptr) {
    return nullptr;
  }
  const py::gil_scoped_acquire gil;
  std::array<Place, kMostFrames> room{};
  const Places places(room.data(), read_places(room));
  const auto found = known().find(places);
  if (found != known().end()) {
    return found->second;
  }
  const Stack stack = text_of(places);
  keep(places, stack);
  return stack;
}

} // namespace openreg::distributed
