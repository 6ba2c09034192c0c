// SPDX-License-Identifier: BSD-3-Clause
// Converts error codes of the runtime to PyTorch exceptions.
#pragma once

#include "base/export.h"

#include <openreg/openreg.h>

#include <c10/util/Exception.h>

namespace openreg::aten {

/// Throws c10::OutOfMemoryError for orErrorMemoryAllocation, else
/// c10::AcceleratorError, with the message of the runtime for the failed call.
[[noreturn]] OPENREG_ATEN_API void throw_runtime_error(orError_t error);

/// Reports an error as a warning, where exceptions are not allowed.
void warn_runtime_error(orError_t error) noexcept;

} // namespace openreg::aten

#define OPENREG_CHECK(call)                                \
  do {                                                     \
    const orError_t openreg_error = (call);                \
    if (C10_UNLIKELY(openreg_error != orSuccess)) {        \
      ::openreg::aten::throw_runtime_error(openreg_error); \
    }                                                      \
  } while (false)
