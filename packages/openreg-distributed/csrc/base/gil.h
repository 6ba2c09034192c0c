// SPDX-License-Identifier: BSD-3-Clause
// Waiting without the GIL, which PyTorch holds in some calls of C++.
#pragma once

#include <Python.h>

namespace openreg::distributed {

/// This thread is without the GIL for a scope that waits: what the stream runs
/// may need it.
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
