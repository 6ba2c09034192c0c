// SPDX-License-Identifier: BSD-3-Clause
// The ring of calls, and its file.
#include "flight.h"

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
#include <filesystem>
#include <fstream>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace openreg::distributed {
namespace {

// The version of PyTorch's fields.
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

/// `[a, b]`, of what `text` makes of each.
template <typename Values, typename Text>
std::string list_of(const Values& values, const Text& text) {
  std::string json = "[";
  for (const auto& value : values) {
    json += json.size() > 1 ? ", " : "";
    json += text(value);
  }
  return json + "]";
}

std::string numbers(const std::vector<int64_t>& values) {
  return list_of(values, [](int64_t value) { return std::to_string(value); });
}

std::string sizes_of(const Shapes& shapes) {
  return list_of(shapes.sizes, numbers);
}

std::string types_of(const Shapes& shapes) {
  return list_of(shapes.types, [](at::ScalarType type) {
    return quoted(c10::toString(type));
  });
}

std::string time_of(int64_t time) {
  return time == 0 ? "null" : std::to_string(time);
}

/// Its folder, and no other's: names in the folder of temporary files can be
/// guessed.
void make_own_folder(const std::string& path) {
  const int made = mkdir(path.c_str(), 0700);
  TORCH_CHECK(
      made == 0 || errno == EEXIST, "mkdir ", path, ": ", strerror(errno));
  struct stat found{};
  TORCH_CHECK(
      lstat(path.c_str(), &found) == 0 && S_ISDIR(found.st_mode) &&
          found.st_uid == geteuid(),
      path,
      " is no folder of this user");
}

} // namespace

Shapes::Shapes(const Tensors& tensors) {
  for (const at::Tensor& tensor : tensors) {
    sizes.push_back(tensor.sizes().vec());
    types.push_back(tensor.scalar_type());
  }
}

FlightRecord& FlightRecord::get() {
  static auto* record = new FlightRecord;
  return *record;
}

FlightRecord::FlightRecord()
    : capacity_(number_of("OPENREG_FLIGHT_RECORDS")),
      keeps_stacks_(number_of("OPENREG_FLIGHT_STACKS") == 1),
      writes_files_(number_of("OPENREG_FLIGHT_FILES") == 1),
      parent_(getppid()) {}

uint64_t FlightRecord::add_group(FlightGroup group, uint64_t rank) {
  const std::lock_guard lock(mutex_);
  rank_ = rank;
  const uint64_t number = groups_.empty() ? 0 : groups_.rbegin()->first + 1;
  groups_.emplace(number, std::move(group));
  return number;
}

void FlightRecord::describe_group(
    uint64_t group,
    const std::string& description) {
  const std::lock_guard lock(mutex_);
  groups_.at(group).description = description;
}

std::vector<Frame> FlightRecord::frames() const {
  return keeps_stacks_ && capacity_ > 0 ? python_stack() : std::vector<Frame>{};
}

FlightRecord::Span FlightRecord::add(
    std::vector<FlightCall> calls,
    const std::vector<Frame>& frames) {
  if (capacity_ == 0 || calls.empty()) {
    return {};
  }
  const int64_t now = c10::getTime();
  const std::lock_guard lock(mutex_);
  const Span span{next_, next_ + calls.size()};
  for (FlightCall& call : calls) {
    const size_t place = next_ % capacity_;
    if (ring_.size() <= place) {
      ring_.resize(std::min(capacity_, std::max(2 * place, size_t{16})));
    }
    ring_[place] = Entry{next_++, std::move(call), frames, now, 0, 0, {}};
  }
  return span;
}

FlightRecord::Entry* FlightRecord::find(uint64_t id) {
  Entry& entry = ring_[id % capacity_];
  return entry.id == id ? &entry : nullptr; // or it was overwritten
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
  }
}

void FlightRecord::append(std::string& json, const Entry& entry) const {
  const FlightCall& call = entry.call;
  const FlightGroup& group = groups_.at(call.group);
  const char* state = !entry.failure.empty() ? "failed"
      : entry.ended != 0                     ? "completed"
      : entry.started != 0                   ? "started"
                                             : "scheduled";
  json += c10::str(
      "{\"record_id\": ",
      entry.id - 1,
      ", \"profiling_name\": ",
      quoted(call.name),
      ", \"state\": \"",
      state,
      "\", \"pg_id\": ",
      call.group,
      ", \"process_group\": [",
      quoted(group.name),
      ", ",
      quoted(group.description),
      "], \"is_p2p\": ",
      call.is_message ? "true" : "false",
      ", \"collective_seq_id\": ",
      call.collective,
      ", \"p2p_seq_id\": ",
      call.exchange,
      ", \"op_id\": ",
      entry.id);
  if (call.tag) {
    json += c10::str(", \"tag\": ", *call.tag);
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
          entry.frames,
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
  std::array<char, 256> host{};
  gethostname(host.data(), host.size() - 1);
  const std::lock_guard lock(mutex_);
  std::string json = c10::str(
      "{\"version\": \"",
      kVersion,
      "\",\n\"rank\": ",
      rank_,
      ",\n\"host\": ",
      quoted(host.data()),
      ",\n\"process\": ",
      getpid(),
      ",\n\"time_ns\": ",
      c10::getTime(),
      ",\n\"reason\": ",
      quoted(reason),
      ",\n\"pg_config\": {");
  // A name can come again after its group was destroyed: the last one counts.
  std::map<std::string, const FlightGroup*> named;
  for (const auto& [number, group] : groups_) {
    named[group.name] = &group;
  }
  const char* separator = "\n";
  for (const auto& [name, group] : named) {
    json += c10::str(
        separator,
        quoted(name),
        ": {\"name\": ",
        quoted(name),
        ", \"desc\": ",
        quoted(group->description),
        ", \"ranks\": \"",
        list_of(
            group->ranks, [](uint64_t rank) { return std::to_string(rank); }),
        "\"}");
    separator = ",\n";
  }
  json += "},\n\"entries\": [";
  separator = "\n";
  const uint64_t kept = std::min<uint64_t>(next_ - 1, capacity_);
  for (uint64_t id = next_ - kept; id < next_; ++id) {
    json += separator;
    append(json, ring_[id % capacity_]);
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
  const std::string folder = c10::str(
      std::filesystem::temp_directory_path().string(),
      "/openreg-flight-",
      geteuid(),
      "-",
      parent_);
  make_own_folder(folder);
  return folder + "/rank_" + name;
}

std::string FlightRecord::write(const std::string& reason, std::string path)
    const {
  if (path.empty()) {
    path = default_path();
  }
  // Whole or not at all, also if another thread writes it now.
  static std::atomic<int> writes{0};
  const std::string other = c10::str(path, ".", getpid(), ".", ++writes);
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
  if (!writes_files_ || capacity_ == 0) {
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
