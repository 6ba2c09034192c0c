// SPDX-License-Identifier: BSD-3-Clause
// Graphs: what was said to captured streams, to be said again at each launch.
//
// A branch is what one stream was given. Commands between two records or waits
// of a branch are one entry of a stream, which runs them one after another, so
// that a launch costs little more than its kernels.
#pragma once

#include "activity/recorder.h"
#include "backend/backend.h"
#include "base/device_state.h"

#include <openreg/openreg.h>

#include <cstddef>
#include <memory>
#include <string>
#include <variant>
#include <vector>

namespace openreg {

/// A function of the host that takes its turn in a stream.
struct HostCall {
  orHostFn_t function;
  void* data;
  orKernel_t cleanup;

  void operator()() const {
    function(data);
  }
};

/// Called when a graph or a stream no longer uses an argument block.
struct Cleanup {
  orKernel_t function = nullptr; // null: nothing
  void* args = nullptr;
};
template <typename Action>
Cleanup cleanup_of(const Action& action) {
  if (const auto* host = std::get_if<HostCall>(&action)) {
    return {host->cleanup, host->data};
  }
  const auto* command = std::get_if<Command>(&action);
  if (command == nullptr) {
    return {};
  }
  if (const auto* launch = std::get_if<Launch>(command)) {
    return {launch->cleanup, launch->args};
  }
  const auto* message = std::get_if<Message>(command);
  return message ? Cleanup{message->cleanup, message->args} : Cleanup{};
}

class Graph {
 public:
  /// It keeps its argument block until the graph ends.
  using Node = std::variant<Command, HostCall>;

  struct Branch {
    int device;
    int priority;
    DeviceState::Epoch epoch; // in which the addresses of the nodes are good
    std::vector<Node> nodes;
    // The step that its next node belongs to, or kNone.
    std::size_t open_run;
  };
  static constexpr std::size_t kNone = ~std::size_t{0};

  /// Nodes of a branch, which run one after another.
  struct Run {
    std::size_t begin;
    std::size_t end;
  };
  /// Marks the end of what the branch has so far. Marks count from 0.
  struct Mark {
    std::size_t number;
  };
  /// The branch goes on after a mark of another one, which comes earlier.
  struct Join {
    std::size_t mark;
  };
  struct Step {
    std::size_t branch;
    std::variant<Run, Mark, Join> action;
  };

  Graph() = default;
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;
  /// Gives the argument blocks back.
  ~Graph();

  std::size_t add_branch(int device, int priority, DeviceState::Epoch epoch);
  void add(std::size_t branch, Node&& node);
  std::size_t mark(std::size_t branch);
  void join(std::size_t branch, std::size_t mark);

  /// The first one is that of the stream where the capture began.
  const std::vector<Branch>& branches() const noexcept {
    return branches_;
  }
  /// In the order of the capture.
  const std::vector<Step>& steps() const noexcept {
    return steps_;
  }
  std::size_t mark_count() const noexcept {
    return marks_;
  }
  std::size_t node_count() const noexcept;
  /// The text of a file for Graphviz.
  std::string dot() const;

 private:
  std::vector<Branch> branches_;
  std::vector<Step> steps_;
  std::size_t marks_ = 0;
};

/// A run of a graph on its way through a stream.
struct GraphRun {
  std::shared_ptr<const Graph> graph;
  std::size_t branch;
  Graph::Run nodes;
  // Of each node, if the launch is recorded; null for a kind that is not.
  std::vector<std::unique_ptr<activity::Ticket>> tickets{};
};

} // namespace openreg
