// SPDX-License-Identifier: BSD-3-Clause
// The flight record: what this rank did last, for the case that it fails.
//
// Its files have the fields of PyTorch's flight recorder, which has no place
// for other backends.
#pragma once

#include "python_stack.h"
#include "transport.h"

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace openreg::distributed {

/// Sizes and types of tensors, without the tensors.
struct Shapes {
  Shapes() = default;
  explicit Shapes(const Tensors& tensors);

  std::vector<std::vector<int64_t>> sizes;
  std::vector<at::ScalarType> types;
};

struct FlightGroup {
  std::string name;
  std::string description;
  std::vector<uint64_t> ranks; // as the default group counts them
};

/// A collective, or one message.
struct FlightCall {
  uint64_t group = 0; // what add_group() returned
  bool is_message = false;
  uint64_t collective = 0; // numbers of the last ones of the group
  uint64_t exchange = 0;
  std::string name; // as the profiler shows it
  std::optional<int> tag;
  Shapes inputs;
  Shapes outputs;
  Milliseconds timeout{};
};

/// All calls of a process, in a ring.
class FlightRecord {
 public:
  /// That of this process, which is never destroyed.
  static FlightRecord& get();

  /// Reads the settings, of which a wrong one is an error from here on.
  FlightRecord();

  /// `rank` is this one, as the default group counts.
  uint64_t add_group(FlightGroup group, uint64_t rank);
  /// Groups are described after they are made.
  void describe_group(uint64_t group, const std::string& description);

  /// Takes up calls that are one, which `Span` names from then on.
  struct Span {
    uint64_t first = 0;
    uint64_t end = 0;
  };
  Span add(std::vector<FlightCall> calls, const std::vector<Frame>& frames);
  /// The frames for add(), if they are kept. It may wait for the GIL, so the
  /// caller must hold no lock.
  std::vector<Frame> frames() const;
  void set_started(Span span);
  /// Empty if they have succeeded.
  void set_ended(Span span, const std::string& failure);

  std::string to_json(const std::string& reason) const;
  /// Writes it to a file; by default to the one of this rank. Returns the path.
  /// Throws if that fails.
  std::string write(const std::string& reason, std::string path = {}) const;
  /// The same after a failure: what to add to its message. Empty if the setting
  /// forbids it.
  std::string write_after(const std::string& failure) const;

 private:
  struct Entry {
    uint64_t id = 0;
    FlightCall call;
    std::vector<Frame> frames;
    int64_t created = 0; // nanoseconds since 1970, 0 if not yet
    int64_t started = 0;
    int64_t ended = 0;
    std::string failure;
  };

  Entry* find(uint64_t id);
  void append(std::string& json, const Entry& entry) const;
  std::string default_path() const;

  const size_t capacity_;
  const bool keeps_stacks_;
  const bool writes_files_;
  const int parent_; // which all ranks of a job on this host have
  mutable std::mutex mutex_;
  std::vector<Entry> ring_;
  uint64_t next_ = 1;
  std::map<uint64_t, FlightGroup> groups_;
  uint64_t rank_ = 0;
};

} // namespace openreg::distributed
