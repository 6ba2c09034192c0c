// SPDX-License-Identifier: BSD-3-Clause
// Kernels, copies, calls and ranges of a trace.
#include "trace.h"

#include <algorithm>
#include <device_type.h>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_set>
#include <utility>

namespace openreg::profiler {
namespace {

using libkineto::ActivityType;
using Activity = libkineto::GenericTraceActivity;

/// The ids of calls, distinct from PyTorch's operator ids.
std::int32_t id_of(std::uint64_t correlation) {
  constexpr std::uint64_t kFirst = 0x40000000;
  return static_cast<std::int32_t>(kFirst + correlation % kFirst);
}

constexpr double kNanoseconds = 1000; // of a microsecond

bool is_device_work(const orActivity& record) {
  return record.kind <= orActivityMemset && record.nested == 0;
}

/// Query calls, which CUDA's traces omit, too.
bool is_question(std::string_view function) {
  constexpr std::string_view kPrefixes[] = {
      "orGet",
      "orPeek",
      "orSetDevice",
      "orRuntimeGet",
      "orDeviceGet",
      "orStreamGet",
      "orStreamQuery",
      "orStreamRunsHere",
      "orEventQuery",
      "orEventElapsedTime",
      "orMemGetInfo",
      "orPointerGet"};
  return std::any_of(
      std::begin(kPrefixes), std::end(kPrefixes), [&](std::string_view each) {
        return function.starts_with(each);
      });
}

/// The name as in CUDA's traces: "Memcpy HtoD (Pinned -> Device)".
std::string name_of_copy(const orActivity& record) {
  const std::string host =
      record.hostMemory == orMemoryTypeHost ? "Pinned" : "Pageable";
  switch (record.direction) {
    case orMemcpyHostToDevice:
      return "Memcpy HtoD (" + host + " -> Device)";
    case orMemcpyDeviceToHost:
      return "Memcpy DtoH (Device -> " + host + ")";
    case orMemcpyHostToHost:
      return "Memcpy HtoH (" + host + " -> " + host + ")";
    default:
      return "Memcpy DtoD (Device -> Device)";
  }
}

/// The name of an operator's kernel: "mm_kernel". It differs from the
/// operator's name, so that each has a separate row in tables.
std::string name_of_kernel(std::string_view name) {
  constexpr std::string_view kAten = "aten::";
  const bool is_operator = name.find("::") != std::string_view::npos;
  if (name.starts_with(kAten)) {
    name.remove_prefix(kAten.size());
  }
  return std::string(name) + (is_operator ? "_kernel" : "");
}

std::pair<ActivityType, std::string> describe(const orActivity& record) {
  switch (record.kind) {
    case orActivityMemcpy:
      return {ActivityType::GPU_MEMCPY, name_of_copy(record)};
    case orActivityMemset:
      return {ActivityType::GPU_MEMSET, "Memset (Device)"};
    default:
      return {ActivityType::CONCURRENT_KERNEL, name_of_kernel(record.name)};
  }
}

class Builder {
 public:
  Builder(
      libkineto::CpuTraceBuffer& trace,
      std::int64_t to_realtime,
      const Window& window,
      const libkineto::getLinkedActivityCallback& linked)
      : trace_(trace),
        to_realtime_(to_realtime),
        window_(window),
        linked_(linked) {}

  std::int64_t realtime(std::uint64_t monotonic) const {
    return static_cast<std::int64_t>(monotonic) + to_realtime_;
  }
  bool has(const orActivity& record) const {
    return realtime(record.enqueued) <= window_.end &&
        realtime(record.ended) >= window_.begin;
  }

  void add_device_work(const orActivity& record, bool has_call) {
    const auto [type, name] = describe(record);
    Activity& made = add(record, type, name);
    made.device = record.device;
    made.resource = record.stream;
    if (has_call) {
      made.flow.start = 0;
    } else {
      made.flow = {};
    }
    made.addMetadata("device", record.device);
    made.addMetadata("stream", record.stream);
    made.addMetadata("correlation", made.id);
    made.addMetadata(
        "queued (us)",
        static_cast<double>(record.started - record.enqueued) / kNanoseconds);
    if (record.bytes > 0) {
      made.addMetadata("bytes", record.bytes);
      const std::uint64_t time = record.ended - record.started;
      if (record.kind != orActivityKernel && time > 0) {
        made.addMetadata(
            "memory bandwidth (GB/s)",
            static_cast<double>(record.bytes) / static_cast<double>(time));
      }
    }
    if (record.error != orSuccess) {
      made.addMetadataQuoted("error", orGetErrorName(record.error));
    }
  }

  void add_call(const orActivity& record, bool has_work) {
    Activity& made = add(record, call_type(), record.name);
    made.device = record.process;
    made.resource = record.thread;
    if (has_work) {
      made.flow.start = 1;
    } else {
      made.flow = {};
    }
    made.addMetadata("correlation", made.id);
    if (record.error != orSuccess) {
      made.addMetadataQuoted("error", orGetErrorName(record.error));
    }
  }

  /// Adds a program range on one stream, around its kernels.
  void add_range(
      int device,
      int stream,
      const libkineto::ITraceActivity& range,
      std::int64_t begin,
      std::int64_t end) {
    trace_.emplace_activity(
        trace_.span, ActivityType::GPU_USER_ANNOTATION, range.name());
    Activity& made = *trace_.activities.back();
    made.startTime = begin;
    made.endTime = end;
    made.device = device;
    made.resource = stream;
    // `linked` is not set: PyTorch would count the time of the kernels twice.
    made.id = static_cast<std::int32_t>(range.correlationId());
  }

  const libkineto::ITraceActivity* find_linked(std::uint64_t id) const {
    return id != 0 && linked_ ? linked_(static_cast<std::int32_t>(id))
                              : nullptr;
  }

 private:
  Activity&
  add(const orActivity& record, ActivityType type, const std::string& name) {
    trace_.emplace_activity(trace_.span, type, name);
    Activity& made = *trace_.activities.back();
    made.startTime = realtime(record.started);
    made.endTime = realtime(record.ended);
    made.id = id_of(record.correlation);
    made.threadId = record.thread;
    made.flow.id = static_cast<std::uint32_t>(made.id);
    made.flow.type = libkineto::kLinkAsyncCpuGpu;
    made.linked = find_linked(record.externalId);
    return made;
  }

  libkineto::CpuTraceBuffer& trace_;
  const std::int64_t to_realtime_;
  const Window window_;
  const libkineto::getLinkedActivityCallback& linked_;
};

} // namespace

ActivityType call_type() {
  return device_type() == c10::kCUDA ? ActivityType::CUDA_RUNTIME
                                     : ActivityType::PRIVATEUSE1_RUNTIME;
}

std::vector<Detail> add_activities(
    libkineto::CpuTraceBuffer& trace,
    const std::vector<orActivity>& records,
    std::int64_t to_realtime,
    const Window& window,
    const Ranges& outer_ranges,
    const libkineto::getLinkedActivityCallback& linked) {
  Builder builder(trace, to_realtime, window, linked);
  std::unordered_set<std::uint64_t> calls;
  std::unordered_set<std::uint64_t> with_work;       // calls
  using Place = std::tuple<int, int, std::uint64_t>; // device, stream, range
  std::map<Place, std::pair<std::int64_t, std::int64_t>> ranges;
  std::vector<Detail> details;
  for (const orActivity& record : records) {
    if (record.kind == orActivityCall && builder.has(record)) {
      calls.insert(record.correlation);
    }
  }
  for (const orActivity& record : records) {
    if (!is_device_work(record) || !builder.has(record)) {
      continue;
    }
    builder.add_device_work(record, calls.count(record.correlation) > 0);
    with_work.insert(record.correlation);
    trace.gpuOpCount += 1;
    const std::int64_t begin = builder.realtime(record.started);
    const std::int64_t end = builder.realtime(record.ended);
    details.push_back(
        {id_of(record.correlation),
         begin,
         builder.realtime(record.enqueued),
         record.bytes});
    for (std::uint64_t id = record.userId; id != 0;) {
      const auto [found, is_new] = ranges.try_emplace(
          Place{record.device, record.stream, id}, begin, end);
      found->second.first = std::min(found->second.first, begin);
      found->second.second = std::max(found->second.second, end);
      const auto outer = outer_ranges.find(id);
      id = outer != outer_ranges.end() ? outer->second : 0;
    }
  }
  for (const auto& [place, extent] : ranges) {
    const auto& [device, stream, id] = place;
    if (const auto* range = builder.find_linked(id)) {
      builder.add_range(device, stream, *range, extent.first, extent.second);
    }
  }
  for (const orActivity& record : records) {
    if (record.kind == orActivityCall && builder.has(record)) {
      const bool has_work = with_work.count(record.correlation) > 0;
      if (has_work || !is_question(record.name)) {
        builder.add_call(record, has_work);
      }
    }
  }
  return details;
}

} // namespace openreg::profiler
