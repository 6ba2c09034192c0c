// SPDX-License-Identifier: BSD-3-Clause
// Builds the messages of failed runtime calls.
#include "device/error.h"

#include "base/keys.h"

#include <string>

namespace openreg::aten {
namespace {

std::string describe(orError_t error) {
  return std::string(kErrorName) + " error: " + orGetErrorString(error) + " (" +
      orGetErrorName(error) + "): " + orGetErrorMessage();
}

} // namespace

void throw_runtime_error(orError_t error) {
  const c10::SourceLocation here{__func__, __FILE__, __LINE__};
  if (error == orErrorMemoryAllocation) {
    throw c10::OutOfMemoryError(here, describe(error));
  }
  if (error == orErrorInitialization) {
    const char* const name = kIsCuda ? "CUDA" : "openreg";
    TORCH_CHECK(
        false,
        "Cannot re-initialize ",
        name,
        " in forked subprocess. To use ",
        name,
        " with multiprocessing, you must use the 'spawn' start method");
  }
  throw c10::AcceleratorError(here, static_cast<int>(error), describe(error));
}

void warn_runtime_error(orError_t error) noexcept {
  try {
    TORCH_WARN(describe(error));
  } catch (...) { // warnings may be errors, which cannot leave
    static_cast<void>(orGetLastError());
  }
}

} // namespace openreg::aten
