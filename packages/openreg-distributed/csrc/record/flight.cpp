// SPDX-License-Identifier: BSD-3-Clause
// The ring buffer of calls, and its file.
#include "record/flight.h"

#include "platform/own_folder.h"
#include "platform/process.h"

#include <openreg/openreg.h>

#include <c10/util/ApproximateClock.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <fstream>
#include <memory>
#include <set>
#include <utility>

namespace openreg::distributed {
namespace {

// The version of PyTorch's format.
constexpr const char* kVersion = "2.10";

uint64_t number_of(const char* name) {
  orSetting setting = OPENREG_SETTING_INIT;
  TORCH_CHECK(
      orGetSettingByName(name, &setting) == orSuccess, orGetErrorMessage());
  return setting.number;
}

std::string quoted(const std::string& text) {
  std::string json = "\"";
  for (const char each : text) {
    if (each == '"' || each == '\\') {
      json += '\\';
      json += each;
    } else if (static_cast<unsigned char>(each) < 0x20) {
      std::array<char, 8> code{};
      std::snprintf(code.data(), code.size(), "\\u%04x", each);
      json += code.data();
    } else {
      json += each;
    }
  }
  return json + '"';
}

/// `[a, b]`, with each value converted by `text`.
template <typename Values, typename Text>
std::string list_of(const Values& values, const Text& text) {
  std::string json = "[";
  for (const auto& value : values) {
    json += json.size() > 1 ? ", " : "";
    json += text(value);
  }
  return json + "]";
}

/// The same for shapes; `text` converts a type and sizes.
template <typename Text>
std::string list_of_each(const Shapes& shapes, const Text& text) {
  std::vector<std::string> texts;
  shapes.for_each([&](at::ScalarType type, at::IntArrayRef sizes) {
    texts.push_back(text(type, sizes));
  });
  return list_of(texts, [](const std::string& each) { return each; });
}

std::string sizes_of(const Shapes& shapes) {
  return list_of_each(shapes, [](at::ScalarType, at::IntArrayRef sizes) {
    return list_of(sizes, [](int64_t size) { return std::to_string(size); });
  });
}

std::string types_of(const Shapes& shapes) {
  return list_of_each(shapes, [](at::ScalarType type, at::IntArrayRef) {
    return quoted(c10::toString(type));
  });
}

/// The name of a collective as in the profiler, and of a message as in NCCL's
/// records: `send 0->1`, `recv 1<-0`.
std::string name_of(const FlightCall& call, int rank) {
  if (!call.message) {
    return c10::str(kBackendName, ":", call.name);
  }
  switch (call.message->kind) {
    case PeerOp::Kind::kSend:
      return c10::str(kBackendName, ":send ", rank, "->", call.message->rank);
    case PeerOp::Kind::kRecv:
      return c10::str(kBackendName, ":recv ", rank, "<-", call.message->rank);
    case PeerOp::Kind::kRecvAny:
      break;
  }
  return c10::str(kBackendName, ":recvAnysource ", rank, "<-any");
}

std::string time_of(int64_t time) {
  return time == 0 ? "null" : std::to_string(time);
}

/// std::filesystem::temp_directory_path() needs libstdc++ 9.
std::string temporary_folder() {
  for (const char* name : {"TMPDIR", "TMP", "TEMP", "TEMPDIR"}) {
    if (const char* folder = std::getenv(name)) {
      return folder;
    }
  }
  return "/tmp";
}

} // namespace

void Shapes::add(const at::Tensor& tensor) {
  numbers_.push_back(static_cast<int64_t>(tensor.scalar_type()));
  numbers_.push_back(tensor.dim());
  numbers_.append(tensor.sizes().begin(), tensor.sizes().end());
}

void Shapes::add(const Tensors& tensors) {
  for (const at::Tensor& tensor : tensors) {
    add(tensor);
  }
}

FlightRecord& FlightRecord::get() {
  static std::atomic<FlightRecord*> record{nullptr};
  FlightRecord* found = record.load();
  if (found != nullptr && found->maker_.is_this_process()) {
    return *found;
  }
  auto made = found == nullptr
      ? std::make_unique<FlightRecord>()
      : std::unique_ptr<FlightRecord>(new FlightRecord(
            found->capacity_, found->keeps_stacks_, found->writes_files_));
  if (record.compare_exchange_strong(found, made.get())) {
    return *made.release();
  }
  return *found; // another thread was first
}

FlightRecord::FlightRecord()
    : FlightRecord(
          number_of("OPENREG_FLIGHT_RECORDS"),
          number_of("OPENREG_FLIGHT_STACKS") == 1,
          number_of("OPENREG_FLIGHT_FILES") == 1) {}

FlightRecord::FlightRecord(
    size_t capacity,
    bool keeps_stacks,
    bool writes_files)
    : capacity_(capacity),
      keeps_stacks_(keeps_stacks),
      writes_files_(writes_files),
      parent_(parent_number()) {}

uint64_t FlightRecord::add_group(FlightGroup group, uint64_t rank) {
  const std::lock_guard lock(mutex_);
  rank_ = rank;
  std::set<uint64_t> named;
  for (const Entry* entry : entries()) {
    named.insert(entry->call.group);
  }
  std::erase_if(groups_, [&](const auto& each) {
    return each.second.is_removed && named.count(each.first) == 0;
  });
  groups_.emplace(next_group_, Group{std::move(group)});
  return next_group_++;
}

void FlightRecord::describe_group(
    uint64_t group,
    const std::string& description) {
  const std::lock_guard lock(mutex_);
  groups_.at(group).group.description = description;
}

void FlightRecord::remove_group(uint64_t group) {
  const std::lock_guard lock(mutex_);
  groups_.at(group).is_removed = true;
}

Stack FlightRecord::stack() const {
  return keeps_stacks_ && keeps_calls() ? python_stack() : nullptr;
}

FlightRecord::Span FlightRecord::add(
    c10::ArrayRef<FlightCall> calls,
    const Stack& stack) {
  if (!keeps_calls() || calls.empty()) {
    return {};
  }
  const int64_t now = c10::getTime();
  const std::lock_guard lock(mutex_);
  const Span span{next_, next_ + calls.size()};
  for (const FlightCall& call : calls) {
    const size_t place = next_ % capacity_;
    if (ring_.size() <= place) {
      ring_.resize(std::min(capacity_, std::max(2 * place, size_t{16})));
    }
    groups_.at(call.group).collectives = call.collective;
    Entry& entry = ring_[place];
    if (entry.id != 0 && entry.ended == 0 && unended_.size() < capacity_) {
      unended_.emplace(entry.id, std::move(entry));
    }
    entry = Entry{next_++, call, stack, now, 0, 0, {}};
  }
  return span;
}

FlightRecord::Entry* FlightRecord::find(uint64_t id) {
  Entry& entry = ring_[id % capacity_];
  if (entry.id == id) {
    return &entry;
  }
  const auto found = unended_.find(id);
  return found == unended_.end() ? nullptr : &found->second;
}

std::vector<const FlightRecord::Entry*> FlightRecord::entries() const {
  std::vector<const Entry*> found;
  for (const auto& [id, entry] : unended_) {
    found.push_back(&entry);
  }
  const uint64_t kept = std::min<uint64_t>(next_ - 1, capacity_);
  for (uint64_t id = next_ - kept; id < next_; ++id) {
    found.push_back(&ring_[id % capacity_]);
  }
  return found;
}

void FlightRecord::set_started(Span span) {
  const int64_t now = c10::getTime();
  const std::lock_guard lock(mutex_);
  for (uint64_t id = span.first; id < span.end; ++id) {
    if (Entry* entry = find(id)) {
      entry->started = now;
    }
  }
}

void FlightRecord::set_ended(Span span, const std::string& failure) {
  const int64_t now = c10::getTime();
  const std::lock_guard lock(mutex_);
  for (uint64_t id = span.first; id < span.end; ++id) {
    if (Entry* entry = find(id)) {
      entry->ended = now;
      entry->failure = failure;
    }
    if (failure.empty()) {
      unended_.erase(id);
    }
  }
}

void FlightRecord::append(std::string& json, const Entry& entry) const {
  const FlightCall& call = entry.call;
  const FlightGroup& group = groups_.at(call.group).group;
  const char* state = !entry.failure.empty() ? "failed"
      : entry.ended != 0                     ? "completed"
      : entry.started != 0                   ? "started"
                                             : "scheduled";
  json += c10::str(
      "{\"record_id\": ",
      entry.id - 1,
      ", \"profiling_name\": ",
      quoted(name_of(call, group.rank)),
      ", \"state\": \"",
      state,
      "\", \"pg_id\": ",
      call.group,
      ", \"process_group\": [",
      quoted(group.name),
      ", ",
      quoted(group.description),
      "], \"is_p2p\": ",
      call.message ? "true" : "false",
      ", \"collective_seq_id\": ",
      call.collective,
      ", \"p2p_seq_id\": ",
      call.exchange,
      ", \"op_id\": ",
      entry.id);
  if (call.message) {
    json += c10::str(", \"tag\": ", call.message->tag);
  }
  json += c10::str(
      ", \"input_sizes\": ",
      sizes_of(call.inputs),
      ", \"input_dtypes\": ",
      types_of(call.inputs),
      ", \"output_sizes\": ",
      sizes_of(call.outputs),
      ", \"output_dtypes\": ",
      types_of(call.outputs),
      ", \"time_created_ns\": ",
      entry.created,
      ", \"time_discovered_started_ns\": ",
      time_of(entry.started),
      ", \"time_discovered_completed_ns\": ",
      time_of(entry.ended),
      ", \"timeout_ms\": ",
      call.timeout.count(),
      ", \"retired\": ",
      entry.ended != 0 ? "true" : "false",
      ", \"failure\": ",
      entry.failure.empty() ? "null" : quoted(entry.failure),
      ", \"frames\": ",
      list_of(
          entry.stack ? *entry.stack : std::vector<Frame>{},
          [](const Frame& frame) {
            return c10::str(
                "{\"name\": ",
                quoted(frame.function),
                ", \"filename\": ",
                quoted(frame.file),
                ", \"line\": ",
                frame.line,
                "}");
          }),
      "}");
}

std::string FlightRecord::to_json(const std::string& reason) const {
  const std::lock_guard lock(mutex_);
  std::string json = c10::str(
      "{\"version\": \"",
      kVersion,
      "\",\n\"rank\": ",
      rank_,
      ",\n\"host\": ",
      quoted(host_name()),
      ",\n\"process\": ",
      process_number(),
      ",\n\"time_ns\": ",
      c10::getTime(),
      ",\n\"reason\": ",
      quoted(reason),
      ",\n\"pg_config\": {");
  // A name can be reused after its group was destroyed: the last group counts.
  std::map<std::string, uint64_t> named;
  for (const auto& [number, each] : groups_) {
    named[each.group.name] = number;
  }
  const char* separator = "\n";
  for (const auto& [name, number] : named) {
    const auto& [group, collectives, is_removed] = groups_.at(number);
    json += c10::str(
        separator,
        quoted(name),
        ": {\"name\": ",
        quoted(name),
        ", \"desc\": ",
        quoted(group.description),
        ", \"ranks\": \"",
        list_of(
            group.ranks, [](uint64_t rank) { return std::to_string(rank); }),
        "\", \"pg_id\": ",
        number,
        ", \"token\": ",
        group.token,
        ", \"collectives\": ",
        collectives,
        "}");
    separator = ",\n";
  }
  json += "},\n\"entries\": [";
  separator = "\n";
  for (const Entry* entry : entries()) {
    json += separator;
    append(json, *entry);
    separator = ",\n";
  }
  return json + "]}\n";
}

std::string FlightRecord::default_path() const {
  std::string name;
  {
    const std::lock_guard lock(mutex_);
    name = std::to_string(rank_) + ".json";
  }
  // PyTorch's own variable for this.
  if (const char* prefix = std::getenv("TORCH_FR_DUMP_TEMP_FILE")) {
    return prefix + name;
  }
  std::string folder = c10::str(
      temporary_folder(), "/openreg-flight-", user_number(), "-", parent_);
  // Ranks restarted by torchrun have the same parent.
  if (const char* restarts = std::getenv("TORCHELASTIC_RESTART_COUNT")) {
    folder += c10::str("-", restarts);
  }
  make_own_folder(folder);
  return folder + "/rank_" + name;
}

std::string FlightRecord::write(const std::string& reason, std::string path)
    const {
  if (path.empty()) {
    path = default_path();
  }
  // Replaces the file atomically, also if another thread writes it.
  static std::atomic<int> writes{0};
  const std::string other =
      c10::str(path, ".", process_number(), ".", ++writes);
  bool written = false;
  {
    std::ofstream file(other, std::ios::trunc);
    file << to_json(reason);
    file.flush();
    written = file.good();
  }
  written = written && std::rename(other.c_str(), path.c_str()) == 0;
  const int error = errno;
  if (!written) {
    std::remove(other.c_str());
  }
  TORCH_CHECK(
      written,
      "occl: the flight record cannot be written to ",
      path,
      ": ",
      strerror(error));
  return path;
}

std::string FlightRecord::write_after(const std::string& failure) const {
  if (!writes_files_ || !keeps_calls()) {
    return {};
  }
  try {
    return "; what this rank did last is in " + write(failure);
  } catch (const c10::Error& error) {
    return c10::str("; ", error.what_without_backtrace());
  } catch (const std::exception& error) {
    return c10::str("; the flight record cannot be written: ", error.what());
  }
}

} // namespace openreg::distributed
