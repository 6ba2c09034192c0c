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
      "The captured commands of a stream, which can run again.\n\n"
      "``Stream.end_capture`` creates it. It keeps the arguments of its\n"
      "kernels and the buffers of its copies alive.",
      nb::is_weak_referenceable())
      .def_prop_ro(
          "node_count",
          [](const Graph& self) {
            std::size_t count = 0;
            check(orGraphGetNodeCount(self.handle, &count));
            return count;
          },
          "The number of commands.")
      .def(
          "launch",
          [](const Graph& self, const Stream* stream) {
            check(without_gil(
                [&] { return orGraphLaunch(self.handle, handle_of(stream)); }));
          },
          "stream"_a = nb::none(),
          "Enqueues the commands on a stream.\n\n"
          "The call does not block. Launches of a graph run one after\n"
          "another.\n\n"
          "Args:\n"
          "    stream: A stream of the captured device, by default the\n"
          "        default stream of the current device.\n\n"
          "Raises:\n"
          "    OpenRegError: If the stream belongs to another device or is\n"
          "        captured, or if a device has failed or was reset since\n"
          "        the capture.")
      .def(
          "dump",
          [](const Graph& self, const std::string& path) {
            check(orGraphDebugDotPrint(self.handle, path.c_str()));
          },
          "path"_a,
          "Writes the commands and their order to a file for Graphviz.\n\n"
          "Args:\n"
          "    path: The file, which is overwritten.\n\n"
          "Raises:\n"
          "    OpenRegError: If the file cannot be written.");
}

} // namespace openreg::python
