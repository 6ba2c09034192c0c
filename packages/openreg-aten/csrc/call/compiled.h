// SPDX-License-Identifier: BSD-3-Clause
// Launches kernels that a compiler such as Inductor generated.
//
// They follow stream order as operators do, by the same rule (pace.h). Other
// packages find launch_compiled() in the capsule
// openreg_aten._C.launch_compiled, and declare the struct themselves.
#pragma once

#include "base/export.h"

#include <cstddef>
#include <cstdint>

namespace openreg::aten {

/// A kernel and its arguments, at kernel addresses.
struct CompiledCall {
  size_t struct_size; // bytes, in the declaration of the caller
  int64_t device;
  const char* name; // for errors and counts; never freed
  size_t bytes;     // of operands
  bool may_raise;   // the kernel may reject values
  bool must_run;    // before the launch returns, because it uses host memory
  void (*run)(void* args);
  void* args;                           // valid during the launch
  void* (*copy)(const void* args);      // for a call that runs later
  void (*destroy)(void* args) noexcept; // destroys a copy
};

/// Runs a kernel on the current stream of the device, or enqueues it there.
/// Throws the exception of a kernel that runs. If an enqueued kernel fails, the
/// next synchronizing call reports the error with the name of the kernel.
OPENREG_ATEN_API void launch_compiled(const CompiledCall& call);

} // namespace openreg::aten
