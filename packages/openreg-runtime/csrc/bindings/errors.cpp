// SPDX-License-Identifier: BSD-3-Clause
// Error codes of the C API as Python exceptions.
#include "bindings.h"

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
  if (error != orSuccess) {
    raise(error, orGetErrorMessage());
  }
}

} // namespace openreg::python
