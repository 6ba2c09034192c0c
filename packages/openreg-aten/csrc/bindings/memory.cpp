// SPDX-License-Identifier: BSD-3-Clause
// The memory functions of openreg_aten._C: statistics, limits and history.
#include "base/keys.h"
#include "bindings/annotations.h"
#include "bindings/bindings.h"
#include "memory/allocator.h"
#include "memory/memory_history.h"

#include <ATen/core/CachingHostAllocator.h>
#include <c10/core/AllocatorConfig.h>

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <array>
#include <string>
#include <unordered_map>

namespace nb = nanobind;

namespace openreg::aten {
namespace {

/// Converts the stacks of a snapshot. Each stack becomes a list of frames once.
class Stacks {
 public:
  void add(const StackContext& stack) {
    if (stack && places_.emplace(stack.get(), stacks_.size()).second) {
      stacks_.push_back(stack);
    }
  }
  void symbolize() {
    const StackTable table = openreg::aten::symbolize(stacks_);
    std::vector<nb::dict> frames;
    for (const StackFrame& each : table.frames) {
      nb::dict frame;
      frame["name"] = nb::str(each.function.c_str());
      frame["filename"] = nb::str(each.filename.c_str());
      frame["line"] = each.line;
      frames.push_back(std::move(frame));
    }
    for (const auto& stack : table.stacks) {
      nb::list list;
      for (const size_t place : stack) {
        list.append(frames[place]);
      }
      lists_.push_back(std::move(list));
    }
  }
  nb::list operator()(const StackContext& stack) const {
    return stack ? lists_.at(places_.at(stack.get())) : nb::list();
  }

 private:
  std::vector<StackContext> stacks_;
  std::unordered_map<const c10::GatheredContext*, size_t> places_;
  std::vector<nb::list> lists_;
};

const char* name_of(TraceEntry::Action action) {
  constexpr std::array names{
      "alloc",
      "free_requested",
      "free_completed",
      "segment_alloc",
      "segment_free",
      "segment_map",
      "segment_unmap",
      "snapshot",
      "oom"};
  return names.at(static_cast<size_t>(action));
}

nb::object address_of(const void* stream) {
  return nb::int_(reinterpret_cast<size_t>(stream));
}

nb::dict segment_dict(
    const c10::CachingDeviceAllocator::SegmentInfo& segment,
    const Stacks& stacks) {
  const nb::tuple pool = nb::make_tuple(
      segment.owner_private_pool_id.first,
      segment.owner_private_pool_id.second);
  nb::list blocks;
  size_t address = segment.address;
  for (const auto& each : segment.blocks) {
    nb::dict block;
    block["address"] = address;
    block["size"] = each.size;
    block["requested_size"] = each.requested_size;
    block["state"] = each.allocated ? "active_allocated"
        : each.active               ? "active_awaiting_free"
                                    : "inactive";
    block["frames"] = stacks(each.context_when_allocated);
    blocks.append(block);
    address += each.size;
  }
  nb::dict result;
  result["device"] = static_cast<int>(segment.device);
  result["address"] = segment.address;
  result["total_size"] = segment.total_size;
  result["allocated_size"] = segment.allocated_size;
  result["active_size"] = segment.active_size;
  result["requested_size"] = segment.requested_size;
  result["stream"] = address_of(segment.stream);
  result["segment_type"] = segment.is_large ? "large" : "small";
  result["segment_pool_id"] = pool;
  result["is_expandable"] = segment.is_expandable;
  result["frames"] = stacks(segment.context_when_allocated);
  result["blocks"] = blocks;
  return result;
}

nb::dict entry_dict(const TraceEntry& entry, const Stacks& stacks) {
  nb::dict result;
  result["action"] = name_of(entry.action_);
  result[entry.action_ == TraceEntry::OOM ? "device_free" : "addr"] =
      entry.addr_;
  result["size"] = entry.size_;
  result["stream"] = address_of(entry.stream_);
  result["time_us"] = entry.time_.t_;
  result["compile_context"] = nb::str(entry.compile_context_.c_str());
  result["user_metadata"] = nb::str(entry.user_metadata_.c_str());
  result["pool_id"] =
      nb::make_tuple(entry.mempool_.first, entry.mempool_.second);
  result["frames"] = stacks(entry.context_);
  return result;
}

nb::dict annotation_dict(const Annotation& annotation) {
  nb::dict result;
  result["name"] = nb::str(annotation.name.c_str());
  result["stage"] = annotation.is_begin ? "START" : "END";
  result["device"] = static_cast<int>(annotation.device);
  result["time_us"] = annotation.time;
  return result;
}

/// Returns the parts of PYTORCH_ALLOC_CONF that apply to openreg devices.
nb::dict settings_dict() {
  using Config = c10::CachingAllocator::AcceleratorAllocatorConfig;
  nb::dict divisions;
  size_t power = 1;
  for (const size_t each : Config::roundup_power2_divisions()) {
    divisions[nb::str(std::to_string(power).c_str())] = each;
    power *= 2;
  }
  nb::dict result;
  result["PYTORCH_ALLOC_CONF"] =
      nb::str(Config::last_allocator_settings().c_str());
  result["max_split_size"] = static_cast<int64_t>(Config::max_split_size());
  result["garbage_collection_threshold"] =
      Config::garbage_collection_threshold();
  result["expandable_segments"] = false;
  result["roundup_power2_divisions"] = divisions;
  return result;
}

nb::dict snapshot_dict() {
  const MemorySnapshot snapshot = memory_snapshot();
  Stacks stacks;
  for (const auto& segment : snapshot.segments) {
    stacks.add(segment.context_when_allocated);
    for (const auto& block : segment.blocks) {
      stacks.add(block.context_when_allocated);
    }
  }
  for (const auto& trace : snapshot.traces) {
    for (const TraceEntry& entry : trace) {
      stacks.add(entry.context_);
    }
  }
  stacks.symbolize();
  nb::list segments;
  for (const auto& segment : snapshot.segments) {
    segments.append(segment_dict(segment, stacks));
  }
  nb::list traces;
  for (const auto& trace : snapshot.traces) {
    nb::list entries;
    for (const TraceEntry& entry : trace) {
      entries.append(entry_dict(entry, stacks));
    }
    traces.append(entries);
  }
  nb::dict result;
  result["segments"] = segments;
  result["device_traces"] = traces;
  result["allocator_settings"] = settings_dict();
  nb::list external;
  for (const Annotation& annotation : annotations()) {
    external.append(annotation_dict(annotation));
  }
  result["external_annotations"] = external;
  return result;
}

/// Returns the size, segment number, stream and recorded streams of a block.
nb::object block_tuple(uintptr_t address) {
  const auto block = find_block(reinterpret_cast<void*>(address));
  if (!block) {
    return nb::none();
  }
  nb::list streams;
  for (const void* stream : block->used_by) {
    streams.append(address_of(stream));
  }
  return nb::make_tuple(
      block->size, block->segment, address_of(block->stream), streams);
}

nb::dict stat_dict(const c10::CachingAllocator::Stat& stat) {
  nb::dict result;
  result["current"] = stat.current;
  result["peak"] = stat.peak;
  result["allocated"] = stat.allocated;
  result["freed"] = stat.freed;
  return result;
}

nb::dict duration_dict(const c10::CachingAllocator::DurationStat& stat) {
  nb::dict result;
  result["total"] = stat.total;
  result["max"] = stat.max;
  result["min"] = stat.min;
  result["count"] = stat.count;
  result["avg"] = stat.count > 0 ? stat.total / stat.count : 0;
  return result;
}

/// Throws if the mechanism that registers the host allocator is disabled.
at::HostAllocator& host_allocator() {
  at::HostAllocator* allocator = at::getHostAllocator(kDeviceType);
  TORCH_CHECK(
      allocator != nullptr,
      "no host allocator is registered for device type ",
      kDeviceType,
      ", because OPENREG_DISABLE leaves out the mechanism host_allocator");
  return *allocator;
}

nb::dict host_stats_dict() {
  const at::HostStats stats = host_allocator().get_stats();
  nb::dict result;
  result["allocations"] = stat_dict(stats.allocations);
  result["allocated_bytes"] = stat_dict(stats.allocated_bytes);
  result["active_requests"] = stat_dict(stats.active_requests);
  result["active_bytes"] = stat_dict(stats.active_bytes);
  result["host_alloc_time"] = duration_dict(stats.host_alloc_time);
  result["host_free_time"] = duration_dict(stats.host_free_time);
  result["num_host_alloc"] = stats.num_host_alloc;
  result["num_host_free"] = stats.num_host_free;
  return result;
}

void record_history(
    bool enabled,
    bool recorded,
    int context,
    bool cpp_stacks,
    size_t max_entries,
    bool clear,
    const std::vector<std::string>& skipped,
    bool annotates_all_threads) {
  std::optional<HistorySettings> settings;
  if (enabled) {
    settings.emplace();
    settings->recorded = recorded;
    settings->context = static_cast<RecordContext>(context);
    settings->cpp_stacks = cpp_stacks;
    settings->max_entries = max_entries;
    for (const std::string& name : skipped) {
      settings->skipped.push_back(
          c10::CachingDeviceAllocator::parseTraceEntryAction(name));
    }
  }
  record_memory_history(settings, clear);
  if (!enabled) {
    stop_annotations();
  }
  if (!enabled || clear) {
    clear_annotations();
  }
  if (enabled) {
    record_annotations(annotates_all_threads, max_entries);
  }
}

} // namespace

void define_memory(nb::module_& m) {
  m.def(
      "memory_info",
      [](int device) {
        return translated(
            [&] { return device_allocator().getMemoryInfo(to_index(device)); });
      },
      nb::arg("device"));
  m.def(
      "set_memory_fraction",
      [](int device, double fraction) {
        translated([&] { set_memory_fraction(to_index(device), fraction); });
      },
      nb::arg("device"),
      nb::arg("fraction"));
  m.def(
      "memory_fraction",
      [](int device) {
        return translated([&] { return memory_fraction(to_index(device)); });
      },
      nb::arg("device"));
  m.def(
      "record_memory_history",
      [](bool enabled,
         bool recorded,
         int context,
         bool cpp_stacks,
         size_t max_entries,
         bool clear,
         const std::vector<std::string>& skipped,
         bool annotates_all_threads) {
        translated([&] {
          record_history(
              enabled,
              recorded,
              context,
              cpp_stacks,
              max_entries,
              clear,
              skipped,
              annotates_all_threads);
        });
      },
      nb::arg("enabled"),
      nb::arg("recorded"),
      nb::arg("context"),
      nb::arg("cpp_stacks"),
      nb::arg("max_entries"),
      nb::arg("clear"),
      nb::arg("skipped"),
      nb::arg("annotates_all_threads"));
  m.def(
      "memory_block",
      [](uintptr_t address) {
        return translated([&] { return block_tuple(address); });
      },
      nb::arg("address"),
      nb::sig(
          "def memory_block(address: int) -> "
          "tuple[int, int, int, list[int]] | None"));
  m.def("memory_snapshot", [] { return translated(&snapshot_dict); });
  m.def("host_memory_stats", [] { return translated(&host_stats_dict); });
  m.def("reset_accumulated_host_memory_stats", [] {
    translated([] { host_allocator().reset_accumulated_stats(); });
  });
  m.def("reset_peak_host_memory_stats", [] {
    translated([] { host_allocator().reset_peak_stats(); });
  });
}

} // namespace openreg::aten
