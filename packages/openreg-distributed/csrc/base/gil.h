// SPDX-License-Identifier: BSD-3-Clause
// Releases the GIL during waits: PyTorch holds it in some C++ calls.
#pragma once

#include <Python.h>

namespace openreg::distributed {

/// Releases the GIL for a scope that waits, because the awaited stream may need
/// it.
class GilRelease {
 public:
  GilRelease();
  GilRelease(const GilRelease&) = delete;
  GilRelease& operator=(const GilRelease&) = delete;
  ~GilRelease();

 private:
  PyThreadState* released_; // null if this thread did not hold it
};

} // namespace openreg::distributed
