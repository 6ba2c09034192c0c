// SPDX-License-Identifier: BSD-3-Clause
// Kernels that a compiler made, such as Inductor: calls of no operator.
//
// They take their turn in the stream as operators do, by the same rule
// (pace.h). Other packages find launch_compiled() as the capsule
// openreg_aten._C.launch_compiled, and have a declaration of the struct.
#pragma once

#include "base/export.h"

#include <cstddef>
#include <cstdint>

namespace openreg::aten {

/// A kernel and its arguments, at addresses for kernels.
struct CompiledCall {
  size_t struct_size; // bytes, of the caller's declaration
  int64_t device;
  const char* name; // for errors and counts; valid for good
  size_t bytes;     // of operands
  bool may_raise;   // the kernel may refuse values
  bool must_run;    // before the launch returns: it has memory of the host
  void (*run)(void* args);
  void* args;                           // valid while it is launched
  void* (*copy)(const void* args);      // for a call that runs later
  void (*destroy)(void* args) noexcept; // of a copy
};

/// Runs a kernel on the device's current stream, or enqueues it there. Throws
/// what it throws; the failure of one that runs later is reported by the next
/// synchronizing call, with the kernel's name.
OPENREG_ATEN_API void launch_compiled(const CompiledCall& call);

} // namespace openreg::aten
