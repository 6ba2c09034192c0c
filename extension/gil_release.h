// SPDX-License-Identifier: BSD-3-Clause
// Waiting without the GIL, which PyTorch holds in some calls of C++.
#pragma once

#include <Python.h>

#include <chrono>
#include <thread>

namespace openreg {

/// Releases the GIL; null if this thread does not hold it.
inline PyThreadState* release_gil() {
  return Py_IsInitialized() != 0 && PyGILState_Check() != 0
      ? PyEval_SaveThread()
      : nullptr;
}

/// Takes the GIL back, if `released` is not null.
inline void restore_gil(PyThreadState* released) {
  if (released == nullptr) {
    return;
  }
  try {
    PyEval_RestoreThread(released);
  } catch (...) {
    // CPython throws nothing, but before 3.14 it ends a thread that takes the
    // GIL while the interpreter shuts down. glibc unwinds the stack for that.
    // C++ frames do not survive it, so the thread sleeps.
    for (;;) {
      std::this_thread::sleep_for(std::chrono::hours(1));
    }
  }
}

/// Releases the GIL for a scope that waits: the work of a stream may need it.
class GilRelease {
 public:
  GilRelease() : released_(release_gil()) {}
  GilRelease(const GilRelease&) = delete;
  GilRelease& operator=(const GilRelease&) = delete;
  ~GilRelease() {
    restore_gil(released_);
  }

 private:
  PyThreadState* const released_;
};

} // namespace openreg
