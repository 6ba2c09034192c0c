// SPDX-License-Identifier: BSD-3-Clause
// The Python module openreg_profiler._C.
#include "profiler.h"

#include <nanobind/nanobind.h>

NB_MODULE(_C, m) {
  m.doc() = "The activity of OpenReg devices for torch.profiler.";
  m.def(
      "register_profiler",
      &openreg::profiler::register_profiler,
      "Tells PyTorch of the profiler. A second call does nothing.");
}
