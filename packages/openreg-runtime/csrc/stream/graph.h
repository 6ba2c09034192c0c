// SPDX-License-Identifier: BSD-3-Clause
// Graphs: the recorded calls of captured streams, repeated by each launch.
//
// A branch holds the calls on one stream. The commands between two records or
// waits of a branch form one stream entry, so that a launch costs little more
// than its kernels.
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

/// A host function in stream order.
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
  orKernel_t function = nullptr; // null: none
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
  /// A node keeps its argument block until the graph ends.
  using Node = std::variant<Command, HostCall>;

  struct Branch {
    int device;
    int priority;
    DeviceState::Epoch epoch; // in which the nodes' addresses are valid
    std::vector<Node> nodes;
    // The step that its next node belongs to, or kNone.
    std::size_t open_run;
  };
  static constexpr std::size_t kNone = ~std::size_t{0};

  /// Nodes of a branch that run one after another.
  struct Run {
    std::size_t begin;
    std::size_t end;
  };
  /// Marks the present end of the branch. Marks are numbered from 0.
  struct Mark {
    std::size_t number;
  };
  /// The branch waits for an earlier mark of another branch.
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
  /// Releases the argument blocks.
  ~Graph();

  std::size_t add_branch(int device, int priority, DeviceState::Epoch epoch);
  void add(std::size_t branch, Node&& node);
  std::size_t mark(std::size_t branch);
  void join(std::size_t branch, std::size_t mark);

  /// The first branch belongs to the stream where the capture began.
  const std::vector<Branch>& branches() const noexcept {
    return branches_;
  }
  /// The steps, in capture order.
  const std::vector<Step>& steps() const noexcept {
    return steps_;
  }
  std::size_t mark_count() const noexcept {
    return marks_;
  }
  std::size_t node_count() const noexcept;
  /// The graph in the DOT language.
  std::string dot() const;

 private:
  std::vector<Branch> branches_;
  std::vector<Step> steps_;
  std::size_t marks_ = 0;
};

/// A graph launch in a stream's queue.
struct GraphRun {
  std::shared_ptr<const Graph> graph;
  std::size_t branch;
  Graph::Run nodes;
  // One for each node, if the launch is recorded; null for kinds that are not.
  std::vector<std::unique_ptr<activity::Ticket>> tickets{};
};

} // namespace openreg
