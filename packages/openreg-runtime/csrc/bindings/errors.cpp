// SPDX-License-Identifier: BSD-3-Clause
// Error codes of the C API as Python exceptions.
#include "bindings/bindings.h"

#include <cstring>

namespace openreg::python {

void raise(orError_t error, const char* message) {
  const nb::object type =
      nb::module_::import_("openreg_runtime._errors").attr("OpenRegError");
  const nb::object exception =
      type(message, static_cast<int>(error), orGetErrorName(error));
  PyErr_SetObject(type.ptr(), exception.ptr());
  throw nb::python_error();
}

void check(orError_t error) {
  check_interrupt();
  if (error != orSuccess) {
    raise(error, orGetErrorMessage());
  }
}

std::size_t checked_size(const char* what, std::int64_t size) {
  if (size < 0) {
    const std::string text = std::string(what) + " is " + std::to_string(size) +
        ", expected 0 or more bytes";
    throw nb::value_error(text.c_str());
  }
  return static_cast<std::size_t>(size);
}

void checked_handle(
    const char* function,
    const nb::bytes& bytes,
    unsigned char (&handle)[OPENREG_IPC_HANDLE_SIZE]) {
  if (bytes.size() != sizeof(handle)) {
    const std::string text = std::string(function) + ": handle has " +
        std::to_string(bytes.size()) + " bytes, expected " +
        std::to_string(sizeof(handle)) + " from ipc_handle()";
    throw nb::value_error(text.c_str());
  }
  std::memcpy(handle, bytes.data(), sizeof(handle));
}

} // namespace openreg::python
