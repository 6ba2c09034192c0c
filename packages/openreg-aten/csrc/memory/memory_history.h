// SPDX-License-Identifier: BSD-3-Clause
// The history of the device allocator for PyTorch's memory viewer: allocations
// and frees in order, with the Python code that caused them.
#pragma once

#include "base/export.h"

#include <c10/core/CachingDeviceAllocator.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace openreg::aten {

/// The stack of the caller, or null if it was not recorded.
using StackContext = std::shared_ptr<c10::GatheredContext>;
using RecordContext = c10::CachingDeviceAllocator::RecordContext;
using TraceEntry = c10::CachingDeviceAllocator::TraceEntry;

struct HistorySettings {
  bool recorded = false; // the actions, not only the stacks
  RecordContext context = RecordContext::NEVER;
  bool cpp_stacks = false; // in addition to Python stacks
  size_t max_entries = 0;  // for each device
  std::vector<TraceEntry::Action> skipped;
};

/// The kind of stacks that gather_context() gathers now.
extern std::atomic<RecordContext> g_recorded_context;
void set_recorded_context(RecordContext context, bool cpp_stacks);
StackContext gather_stack();

/// Sets the text that entries of this thread contain from now on.
OPENREG_ATEN_API void set_user_metadata(std::string text);
OPENREG_ATEN_API const std::string& user_metadata();

/// Returns the caller's stack if stacks of this kind are recorded. This takes
/// the GIL, so the caller must not hold a lock of the allocator.
inline StackContext gather_context(RecordContext kind) {
  return C10_LIKELY(g_recorded_context.load(std::memory_order_relaxed) < kind)
      ? nullptr
      : gather_stack();
}

/// The latest actions of the allocator of one device. Not thread safe.
class MemoryTrace {
 public:
  void start(const HistorySettings& settings);
  void stop();
  void clear();

  void add(
      TraceEntry::Action action,
      c10::DeviceIndex device,
      size_t address,
      size_t size,
      void* stream,
      const c10::MempoolId_t& pool,
      const StackContext& context) {
    if (C10_UNLIKELY(settings_.recorded)) {
      append(action, device, address, size, stream, pool, context);
    }
  }
  /// Oldest first.
  std::vector<TraceEntry> entries() const;

 private:
  void append(
      TraceEntry::Action action,
      c10::DeviceIndex device,
      size_t address,
      size_t size,
      void* stream,
      const c10::MempoolId_t& pool,
      const StackContext& context);

  HistorySettings settings_;
  std::vector<TraceEntry> entries_; // a ring once it is full
  size_t next_ = 0;
};

struct StackFrame {
  std::string filename;
  std::string function;
  uint64_t line;
};
struct StackTable {
  std::vector<StackFrame> frames; // without duplicates
  // Indices into `frames`, innermost first.
  std::vector<std::vector<size_t>> stacks;
};
/// Returns a stack for each of `stacks`. Takes the GIL.
OPENREG_ATEN_API StackTable symbolize(const std::vector<StackContext>& stacks);

} // namespace openreg::aten
