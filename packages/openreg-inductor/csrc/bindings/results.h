// SPDX-License-Identifier: BSD-3-Clause
// The results of a replayed graph.
#pragma once

#include <Python.h>

namespace openreg::inductor {

/// Adds the class `GraphResults` to the module. Throws.
void add_graph_results(PyObject* module);

} // namespace openreg::inductor
