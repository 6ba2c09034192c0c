// SPDX-License-Identifier: BSD-3-Clause
// Access to the GIL for code that does not use Python.
//
// PyTorch holds the GIL in some calls that wait for a device. Work that needs
// the GIL, such as a kernel in Python, would then deadlock.
#pragma once

#include "base/export.h"

namespace openreg::aten {

struct GilFunctions {
  /// Releases the GIL. Returns null if this thread does not hold it.
  void* (*release)();
  void (*acquire)(void* released);
  /// Whether this thread runs, or has run, Python.
  bool (*is_python_thread)();
  /// Calls `work` with the GIL, unless the interpreter has ended. A pending
  /// Python error is saved, because tensors are also freed during error
  /// handling.
  void (*call)(void (*work)(void*), void* argument);
  /// Rethrows the exception that is being handled if it is a Python exception
  /// that does not derive from Exception, such as KeyboardInterrupt or
  /// SystemExit.
  void (*rethrow_interrupt)();
};
/// Called by the Python module. Before the call, GIL functions do nothing.
OPENREG_ATEN_API void set_gil_functions(GilFunctions functions);

/// False for workers of streams: the interpreter may end before them, and the
/// thread that they work for may wait while it holds the GIL.
bool is_python_thread();

/// Calls GilFunctions::call.
void call_with_python(void (*work)(void*), void* argument);

/// Calls GilFunctions::rethrow_interrupt.
void rethrow_interrupt();

/// Releases the GIL of this thread for a scope that waits.
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
