// SPDX-License-Identifier: BSD-3-Clause
// What the Python function of a graph calls beside kernels. It does so many
// times in a step, hence no pybind11.
#pragma once

#include <Python.h>

namespace openreg::inductor {

/// Adds `empty_strided` and `DeviceGuard` to the module. Throws.
void add_graph_functions(PyObject* module);

} // namespace openreg::inductor
