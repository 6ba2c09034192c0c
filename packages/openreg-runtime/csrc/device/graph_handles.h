// SPDX-License-Identifier: BSD-3-Clause
// Graph handles and graph launches.
#pragma once

#include "stream/graph.h"
#include "stream/stream.h"

#include <openreg/openreg.h>

#include <cstddef>
#include <memory>

namespace openreg {

orGraph_t make_graph(std::shared_ptr<const Graph> graph);
/// The graph behind a handle. Throws orErrorInvalidHandle.
std::shared_ptr<const Graph> graph_of(orGraph_t graph);
/// Throws as orGraphLaunch().
void launch_graph(orGraph_t graph, Stream& stream);
void destroy_graph(orGraph_t graph);
std::size_t live_graph_count();

} // namespace openreg
