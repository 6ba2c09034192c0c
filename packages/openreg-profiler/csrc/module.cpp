// SPDX-License-Identifier: BSD-3-Clause
// The Python module openreg_profiler._C.
#include "details.h"
#include "profiler.h"

#include <nanobind/nanobind.h>

namespace nb = nanobind;

NB_MODULE(_C, m) {
  m.doc() = "The activity of OpenReg devices for torch.profiler.";
  m.def(
      "register_profiler",
      &openreg::profiler::register_profiler,
      "Tells PyTorch of the profiler. A second call does nothing.");
  m.def(
      "details",
      [] {
        nb::dict details;
        for (const auto& each : openreg::profiler::kept_details()) {
          details[nb::make_tuple(each.id, each.started)] =
              nb::make_tuple(each.enqueued, each.bytes);
        }
        return details;
      },
      "Of the work of the last traces, by correlation id and start: when it "
      "was enqueued, in the nanoseconds of time.time_ns(), and its bytes.");
}
