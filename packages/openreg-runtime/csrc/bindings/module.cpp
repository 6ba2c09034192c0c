// SPDX-License-Identifier: BSD-3-Clause
// The Python module openreg_runtime._C.
#include "bindings/bindings.h"

NB_MODULE(_C, m) {
  m.doc() = "The simulated devices as Python objects.";
  openreg::python::init_kernel();
  openreg::python::init_device(m);
  openreg::python::init_graph(m);
  openreg::python::init_stream(m);
  openreg::python::init_event(m);
  openreg::python::init_buffer(m);
  openreg::python::init_host_memory(m);
  openreg::python::init_failures(m);
  openreg::python::init_settings(m);
  openreg::python::init_activity(m);
}
