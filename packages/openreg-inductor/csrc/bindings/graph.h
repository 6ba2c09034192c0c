// SPDX-License-Identifier: BSD-3-Clause
// Functions that a compiled graph calls in addition to kernels. They run many
// times per step, so they do not use pybind11.
#pragma once

#include <Python.h>

namespace openreg::inductor {

/// Adds `empty_strided` and `DeviceGuard` to the module. Throws.
void add_graph_functions(PyObject* module);

} // namespace openreg::inductor
