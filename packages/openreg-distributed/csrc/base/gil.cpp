// SPDX-License-Identifier: BSD-3-Clause
// CPython ends a thread that acquires the GIL while the interpreter shuts down.
#include "base/gil.h"

#include <cxxabi.h>
#include <unistd.h>

namespace openreg::distributed {

GilRelease::GilRelease()
    : released_(
          Py_IsInitialized() && PyGILState_Check() ? PyEval_SaveThread()
                                                   : nullptr) {}

GilRelease::~GilRelease() {
  if (released_ == nullptr) {
    return;
  }
  try {
    PyEval_RestoreThread(released_);
  } catch (const abi::__forced_unwind&) {
    // C++ frames do not survive that, so this thread sleeps forever.
    for (;;) {
      pause();
    }
  }
}

} // namespace openreg::distributed
