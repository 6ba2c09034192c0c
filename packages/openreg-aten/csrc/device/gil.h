// SPDX-License-Identifier: BSD-3-Clause
// Python's lock, for code that knows no Python.
//
// PyTorch holds the GIL in some calls that wait for a device. Work that waits
// for the GIL, such as a kernel in Python, would then never end.
#pragma once

#include "base/export.h"

namespace openreg::aten {

struct GilFunctions {
  /// Gives the GIL up; null if this thread does not have it.
  void* (*release)();
  void (*acquire)(void* released);
  /// Whether this thread runs, or has run, Python.
  bool (*is_python_thread)();
  /// Calls `work` with the GIL, unless the interpreter has ended. An error that
  /// Python is about to raise is kept apart: tensors end on its way, too.
  void (*call)(void (*work)(void*), void* argument);
  /// Throws the exception that is being handled again if it is Python's and no
  /// Exception: KeyboardInterrupt or SystemExit.
  void (*rethrow_interrupt)();
};
/// To be called by the Python module; until then there is no GIL.
OPENREG_ATEN_API void set_gil_functions(GilFunctions functions);

/// False of the workers of streams: the interpreter may end before they do, and
/// the thread that they work for may wait with the GIL.
bool is_python_thread();

/// As GilFunctions::call.
void call_with_python(void (*work)(void*), void* argument);

/// As GilFunctions::rethrow_interrupt.
void rethrow_interrupt();

/// This thread is without the GIL for a scope that waits.
class GilRelease {
 public:
  GilRelease();
  GilRelease(const GilRelease&) = delete;
  GilRelease& operator=(const GilRelease&) = delete;
  ~GilRelease();

 private:
  void* released_;
};

} // namespace openreg::aten
