// SPDX-License-Identifier: BSD-3-Clause
// Python's lock, for code that knows no Python.
//
// PyTorch holds the GIL in some calls that wait for a device. Work that waits
// for the GIL, such as a kernel in Python, would then never end.
#pragma once

#include "export.h"

namespace openreg::aten {

struct GilFunctions {
  /// Gives the GIL up; null if this thread does not have it.
  void* (*release)();
  void (*acquire)(void* released);
};
/// To be called by the Python module; until then there is no GIL.
OPENREG_ATEN_API void set_gil_functions(GilFunctions functions);

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
