// SPDX-License-Identifier: BSD-3-Clause
// The part of the C API that tells what went wrong.
#include "base/error.h"

using namespace openreg;

extern "C" {

orError_t orGetLastError() noexcept {
  const orError_t code = last_error().code;
  last_error().code = orSuccess;
  return code;
}

orError_t orPeekAtLastError() noexcept {
  return last_error().code;
}

const char* orGetErrorName(orError_t error) noexcept {
  return describe(error).name;
}

const char* orGetErrorString(orError_t error) noexcept {
  return describe(error).text;
}

const char* orGetErrorMessage() noexcept {
  return t_not_ready != nullptr ? t_not_ready : last_error().message.c_str();
}

} // extern "C"
