// SPDX-License-Identifier: BSD-3-Clause
// The Python class Graph.
#include "bindings/bindings.h"

#include <nanobind/stl/string.h>

#include <string>

namespace openreg::python {
namespace {

using namespace nb::literals;

} // namespace

void init_graph(nb::module_& m) {
  nb::class_<Graph>(
      m,
      "Graph",
      "What a stream was given while it was captured, to be run again.\n\n"
      "``Stream.end_capture`` makes it. It keeps what its kernels were given "
      "as\n"
      "arguments, and the buffers of its copies.",
      nb::is_weak_referenceable())
      .def_prop_ro(
          "node_count",
          [](const Graph& self) {
            std::size_t count = 0;
            check(orGraphGetNodeCount(self.handle, &count));
            return count;
          },
          "How many commands it has.")
      .def(
          "launch",
          [](const Graph& self, const Stream* stream) {
            check(without_gil(
                [&] { return orGraphLaunch(self.handle, handle_of(stream)); }));
          },
          "stream"_a = nb::none(),
          "Runs its commands in the order of a stream.\n\n"
          "The call returns at once. Launches of a graph run one after\n"
          "another.\n\n"
          "Args:\n"
          "    stream: One of the device that was captured, by default the\n"
          "        default stream of the current device.\n\n"
          "Raises:\n"
          "    OpenRegError: If the stream is of another device, or is\n"
          "        captured, or a device has failed or was reset since the\n"
          "        capture.")
      .def(
          "dump",
          [](const Graph& self, const std::string& path) {
            check(orGraphDebugDotPrint(self.handle, path.c_str()));
          },
          "path"_a,
          "Writes its commands and their order to a file for Graphviz.\n\n"
          "Args:\n"
          "    path: The file, which is overwritten.\n\n"
          "Raises:\n"
          "    OpenRegError: If it cannot be written.");
}

} // namespace openreg::python
