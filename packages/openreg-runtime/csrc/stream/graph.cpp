// SPDX-License-Identifier: BSD-3-Clause
// Construction, destruction and drawing of graphs.
#include "stream/graph.h"

#include "base/process.h"

#include <numeric>
#include <sstream>
#include <type_traits>
#include <utility>

namespace openreg {
namespace {

/// Releases the argument block of a node. Exceptions are lost, because no
/// stream remains to keep them.
void release(const Graph::Node& node) noexcept {
  const Cleanup cleanup = cleanup_of(node);
  if (cleanup.function == nullptr) {
    return;
  }
  try {
    cleanup.function(cleanup.args);
  } catch (...) {
    return;
  }
}

std::string label(const Graph::Node& node) {
  const auto* command = std::get_if<Command>(&node);
  if (command == nullptr) {
    return "host function";
  }
  return std::visit(
      [](const auto& each) -> std::string {
        using Kind = std::decay_t<decltype(each)>;
        if constexpr (std::is_same_v<Kind, Launch>) {
          return each.info.name != nullptr ? each.info.name : "kernel";
        } else if constexpr (std::is_same_v<Kind, Message>) {
          return std::string("message ") + each.info.name;
        } else if constexpr (std::is_same_v<Kind, Copy>) {
          return "copy of " + std::to_string(each.count) + " bytes";
        } else if constexpr (std::is_same_v<Kind, Fill>) {
          return "set of " + std::to_string(each.count) + " bytes";
        } else {
          return "copy of " + std::to_string(each->height) + " rows of " +
              std::to_string(each->width) + " bytes";
        }
      },
      *command);
}

std::string name(std::size_t branch, std::size_t node) {
  return "stream" + std::to_string(branch) + "_" + std::to_string(node);
}

} // namespace

Graph::~Graph() {
  if (process::exiting()) {
    return; // the code of a cleanup may be unloaded
  }
  for (const Branch& branch : branches_) {
    for (const Node& node : branch.nodes) {
      release(node);
    }
  }
}

std::size_t
Graph::add_branch(int device, int priority, DeviceState::Epoch epoch) {
  branches_.push_back({device, priority, epoch, {}, kNone});
  return branches_.size() - 1;
}

void Graph::add(std::size_t branch, Node&& node) {
  Branch& to = branches_[branch];
  const std::size_t index = to.nodes.size();
  if (to.open_run == kNone) {
    steps_.push_back({branch, Run{index, index}});
    to.open_run = steps_.size() - 1;
  }
  to.nodes.push_back(std::move(node));
  std::get<Run>(steps_[to.open_run].action).end = index + 1;
}

std::size_t Graph::mark(std::size_t branch) {
  steps_.push_back({branch, Mark{marks_}});
  branches_[branch].open_run = kNone;
  return marks_++;
}

void Graph::join(std::size_t branch, std::size_t mark) {
  steps_.push_back({branch, Join{mark}});
  branches_[branch].open_run = kNone;
}

std::size_t Graph::node_count() const noexcept {
  return std::accumulate(
      branches_.begin(),
      branches_.end(),
      std::size_t{0},
      [](std::size_t sum, const Branch& branch) {
        return sum + branch.nodes.size();
      });
}

std::string Graph::dot() const {
  std::ostringstream text;
  text << "digraph graph {\n";
  std::vector<std::vector<std::string>> last(branches_.size());
  std::vector<std::vector<std::string>> marked(marks_);
  for (const Step& step : steps_) {
    auto& before = last[step.branch];
    if (const auto* mark = std::get_if<Mark>(&step.action)) {
      marked[mark->number] = before;
    } else if (const auto* join = std::get_if<Join>(&step.action)) {
      const auto& joined = marked[join->mark];
      before.insert(before.end(), joined.begin(), joined.end());
    } else {
      const auto [begin, end] = std::get<Run>(step.action);
      for (std::size_t node = begin; node < end; ++node) {
        const std::string own = name(step.branch, node);
        text << "  " << own << " [label=\""
             << label(branches_[step.branch].nodes[node]) << ", device "
             << branches_[step.branch].device << "\"];\n";
        for (const std::string& each : before) {
          text << "  " << each << " -> " << own << ";\n";
        }
        before = {own};
      }
    }
  }
  text << "}\n";
  return text.str();
}

} // namespace openreg
