// SPDX-License-Identifier: BSD-3-Clause
// Launches a graph: enqueues its steps on streams again.
#include "device/graph_handles.h"

#include "base/error.h"
#include "base/handle_table.h"
#include "device/runtime.h"

#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace openreg {
namespace {

/// The object of a handle. It is recycled, and empty between two uses.
class GraphObject {
 public:
  void start(std::shared_ptr<const Graph> graph) {
    const std::lock_guard lock(mutex_);
    graph_ = std::move(graph);
  }

  std::shared_ptr<const Graph> graph() const {
    const std::lock_guard lock(mutex_);
    check_live();
    return graph_;
  }

  void launch(Stream& stream) {
    const std::lock_guard lock(mutex_); // launches are ordered
    check_live();
    const auto& branches = graph_->branches();
    if (stream.device() != branches[0].device) {
      throw Failure(
          orErrorInvalidValue,
          "stream belongs to device " + std::to_string(stream.device()) +
              ": expected a stream of device " +
              std::to_string(branches[0].device) +
              ", where the graph was captured");
    }
    if (const auto capture = stream.capture()) {
      throw Failure(
          orErrorNotSupported,
          "stream is being captured, and a graph cannot be launched into "
          "another graph");
    }
    for (const Graph::Branch& branch : branches) {
      const DeviceState& state = runtime().device(branch.device).state();
      const DeviceState::Epoch now = state.check();
      if (now != branch.epoch) {
        throw Failure(
            orErrorDeviceLost,
            "graph was captured before device " +
                std::to_string(branch.device) + " was reset");
      }
    }
    while (streams_.size() + 1 < branches.size()) {
      const Graph::Branch& branch = branches[streams_.size() + 1];
      streams_.push_back(
          &runtime().device(branch.device).create_stream(branch.priority));
    }
    // The argument blocks belong to the last launch.
    if (!last_failure_was_reported()) {
      stream.wait(end_, branches[0].epoch);
    }
    try {
      give_steps(stream);
    } catch (...) { // such as a full stream: the next launch follows this part
      join_branches(stream);
      mark_end(stream);
      throw;
    }
    mark_end(stream);
  }

  void end() {
    std::shared_ptr<const Graph> graph; // goes without the lock
    const std::lock_guard lock(mutex_);
    for (Stream* stream : streams_) {
      runtime().device(stream->device()).destroy_stream(*stream);
    }
    streams_.clear();
    end_.reset();
    graph.swap(graph_);
  }

 private:
  void check_live() const {
    if (!graph_) {
      throw Failure(
          orErrorInvalidHandle, "graph was destroyed during the call");
    }
  }

  void give_steps(Stream& stream) {
    std::vector<std::shared_ptr<Point>> points(graph_->mark_count());
    for (const Graph::Step& step : graph_->steps()) {
      Stream& to = step.branch == 0 ? stream : *streams_[step.branch - 1];
      const auto epoch = graph_->branches()[step.branch].epoch;
      if (const auto* run = std::get_if<Graph::Run>(&step.action)) {
        to.replay({graph_, step.branch, *run}, epoch);
      } else if (const auto* mark = std::get_if<Graph::Mark>(&step.action)) {
        auto& point = points[mark->number];
        point = std::make_shared<LocalPoint>(to);
        to.record(point, epoch);
      } else {
        to.wait(points[std::get<Graph::Join>(step.action).mark], epoch);
      }
    }
  }

  /// Whether the last launch failed and a call has returned its failure.
  bool last_failure_was_reported() const {
    if (!end_ || !end_->reached() || end_->failure() == nullptr) {
      return false;
    }
    const auto left = end_->stream()->failure();
    return !left || left->number != end_->failure()->number;
  }

  /// Makes the stream wait for the streams of the other branches.
  void join_branches(Stream& stream) {
    for (std::size_t i = 0; i < streams_.size(); ++i) {
      const auto point = std::make_shared<LocalPoint>(*streams_[i]);
      streams_[i]->record(point, graph_->branches()[i + 1].epoch);
      stream.wait(point, graph_->branches()[0].epoch);
    }
  }

  void mark_end(Stream& stream) {
    const auto end = std::make_shared<LocalPoint>(stream);
    stream.record(end, graph_->branches()[0].epoch);
    end_ = end; // it will be reached
    // The stream of the launch reports the failures of its branches.
    for (std::size_t i = 0; i < streams_.size(); ++i) {
      streams_[i]->forget_failure_in_order(graph_->branches()[i + 1].epoch);
    }
  }

  mutable std::mutex mutex_;
  std::shared_ptr<const Graph> graph_;
  std::vector<Stream*> streams_; // of all branches but the first
  std::shared_ptr<Point> end_;   // of the last launch
};

using Graphs = HandleTable<GraphObject, orGraph_t, HandleKind::kGraph>;

Graphs& graphs() {
  static auto* value = new Graphs;
  return *value;
}

struct Recycled {
  std::mutex mutex;
  std::vector<GraphObject*> objects;
};

Recycled& recycled() {
  static auto* value = new Recycled;
  return *value;
}

GraphObject* take_object() {
  Recycled& free = recycled();
  const std::lock_guard lock(free.mutex);
  if (free.objects.empty()) {
    return new GraphObject;
  }
  GraphObject* object = free.objects.back();
  free.objects.pop_back();
  return object;
}

void give_object(GraphObject* object) {
  Recycled& free = recycled();
  const std::lock_guard lock(free.mutex);
  free.objects.push_back(object);
}

} // namespace

orGraph_t make_graph(std::shared_ptr<const Graph> graph) {
  GraphObject* object = take_object();
  object->start(std::move(graph));
  try {
    return graphs().insert(object);
  } catch (...) {
    object->end();
    give_object(object);
    throw;
  }
}

std::shared_ptr<const Graph> graph_of(orGraph_t graph) {
  return graphs().get(graph, "graph").graph();
}

void launch_graph(orGraph_t graph, Stream& stream) {
  graphs().get(graph, "graph").launch(stream);
}

void destroy_graph(orGraph_t graph) {
  GraphObject& object = graphs().remove(graph, "graph");
  object.end();
  give_object(&object);
}

std::size_t live_graph_count() {
  return graphs().live_count();
}

} // namespace openreg
