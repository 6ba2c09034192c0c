// SPDX-License-Identifier: BSD-3-Clause
// The part of the C API that reports errors.
#include "base/error.h"

#include <utility>

using namespace openreg;

extern "C" {

orError_t orGetLastError() noexcept {
  return std::exchange(t_last_code, orSuccess);
}

orError_t orPeekAtLastError() noexcept {
  return t_last_code;
}

const char* orGetErrorName(orError_t error) noexcept {
  return describe(error).name;
}

const char* orGetErrorString(orError_t error) noexcept {
  return describe(error).text;
}

const char* orGetErrorMessage() noexcept {
  if (t_not_ready != nullptr) {
    return t_not_ready;
  }
  return t_last_message != nullptr ? t_last_message->c_str() : "";
}

} // extern "C"
