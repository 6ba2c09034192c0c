// SPDX-License-Identifier: BSD-3-Clause
// The interface between a generated kernel and the package. Each kernel
// contains a copy of this text.
#pragma once

#include <cstddef>
#include <cstdint>

namespace openreg::inductor {

/// A tensor argument.
struct Operand {
  void* data;   // the address for device kernels
  size_t bytes; // of its elements
  bool on_host; // in host memory
  bool writes;  // the kernel may write to it; set by the caller
};

/// A kernel and its arguments; openreg-aten has the same struct.
struct Call {
  size_t struct_size = sizeof(Call);
  int64_t device;
  const char* name; // valid forever
  size_t bytes;     // of operands
  bool may_raise;   // the kernel may refuse values
  bool must_run;    // before the launch returns
  void (*run)(void* args);
  void* args;
  void* (*copy)(const void* args);
  void (*destroy)(void* args) noexcept;
};

} // namespace openreg::inductor
