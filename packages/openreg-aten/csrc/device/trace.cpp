// SPDX-License-Identifier: BSD-3-Clause
// The mechanism gpu_trace.
#include "device/trace.h"

#include "mechanism.h"

namespace openreg::aten {

bool trace_enabled = false;

OPENREG_MECHANISM(
    gpu_trace,
    "c10::impl::GPUTrace",
    "sanitizers and assert_no_host_sync hear nothing") {
  trace_enabled = true;
}

} // namespace openreg::aten
