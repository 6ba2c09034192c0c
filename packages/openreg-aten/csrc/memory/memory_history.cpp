// SPDX-License-Identifier: BSD-3-Clause
// Records actions, and gathers stacks with PyTorch's functions.
#include "memory/memory_history.h"

#include <torch/csrc/profiler/combined_traceback.h>

#include <algorithm>
#include <chrono>

namespace openreg::aten {
namespace {

std::atomic<bool> g_cpp_stacks{false};
thread_local std::string t_user_metadata;

/// Returns microseconds since 1970.
time_t now() {
  using namespace std::chrono;
  return duration_cast<microseconds>(system_clock::now().time_since_epoch())
      .count();
}

} // namespace

std::atomic<RecordContext> g_recorded_context{RecordContext::NEVER};

void set_recorded_context(RecordContext context, bool cpp_stacks) {
  g_cpp_stacks = cpp_stacks;
  g_recorded_context = context;
}

StackContext gather_stack() {
  return torch::CapturedTraceback::gather(
      /*python=*/true, /*script=*/true, /*cpp=*/g_cpp_stacks);
}

void set_user_metadata(std::string text) {
  t_user_metadata = std::move(text);
}

const std::string& user_metadata() {
  return t_user_metadata;
}

void MemoryTrace::start(const HistorySettings& settings) {
  if (settings.max_entries < entries_.size()) {
    clear();
  } else if (next_ > 0) { // full, and the limit has grown
    std::rotate(
        entries_.begin(),
        entries_.begin() + static_cast<std::ptrdiff_t>(next_),
        entries_.end());
    next_ = 0;
  }
  settings_ = settings;
}

void MemoryTrace::stop() {
  settings_ = {};
  clear();
}

void MemoryTrace::clear() {
  entries_.clear();
  entries_.shrink_to_fit();
  next_ = 0;
}

void MemoryTrace::append(
    TraceEntry::Action action,
    c10::DeviceIndex device,
    size_t address,
    size_t size,
    void* stream,
    const c10::MempoolId_t& pool,
    const StackContext& context) {
  const auto& skipped = settings_.skipped;
  if (std::find(skipped.begin(), skipped.end(), action) != skipped.end()) {
    return;
  }
  TraceEntry entry(
      action,
      device,
      address,
      size,
      stream,
      pool,
      /*time=*/{},
      settings_.context >= RecordContext::ALLOC ? context : nullptr,
      /*compile_context=*/"",
      t_user_metadata);
  entry.time_.t_ = now();
  if (entries_.size() < settings_.max_entries) {
    entries_.push_back(std::move(entry));
  } else if (!entries_.empty()) {
    entries_[next_] = std::move(entry);
    next_ = (next_ + 1) % entries_.size();
  }
}

std::vector<TraceEntry> MemoryTrace::entries() const {
  std::vector<TraceEntry> ordered = entries_;
  std::rotate(
      ordered.begin(),
      ordered.begin() + static_cast<std::ptrdiff_t>(next_),
      ordered.end());
  return ordered;
}

StackTable symbolize(const std::vector<StackContext>& stacks) {
  std::vector<torch::CapturedTraceback*> tracebacks;
  tracebacks.reserve(stacks.size());
  for (const StackContext& stack : stacks) {
    tracebacks.push_back(torch::getCapturedTracebackFromContext(stack));
  }
  const torch::SymbolizedTracebacks symbols = torch::symbolize(tracebacks);
  StackTable table;
  for (const auto& frame : symbols.all_frames) {
    table.frames.push_back({frame.filename, frame.funcname, frame.lineno});
  }
  for (const auto& stack : symbols.tracebacks) {
    table.stacks.emplace_back(stack.begin(), stack.end());
  }
  return table;
}

} // namespace openreg::aten
