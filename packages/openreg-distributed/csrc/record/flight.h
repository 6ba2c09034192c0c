// SPDX-License-Identifier: BSD-3-Clause
// The flight record: the last calls of this rank, for the analysis of failures.
//
// Its files have the fields of PyTorch's flight recorder, which does not
// support other backends.
#pragma once

#include "base/maker.h"
#include "record/python_stack.h"
#include "transport/transport.h"

#include <c10/util/SmallVector.h>

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace openreg::distributed {

/// The sizes and types of tensors, without the tensors.
class Shapes {
 public:
  void add(const at::Tensor& tensor);
  void add(const Tensors& tensors);

  /// Calls `function(type, sizes)` for each.
  template <typename Function>
  void for_each(const Function& function) const {
    for (size_t i = 0; i < numbers_.size();) {
      const auto type = static_cast<at::ScalarType>(numbers_[i]);
      const auto dims = static_cast<size_t>(numbers_[i + 1]);
      function(type, at::IntArrayRef(&numbers_[i] + 2, dims));
      i += 2 + dims;
    }
  }

 private:
  // For each tensor its type, the number of its sizes, and the sizes. Inline
  // for a few.
  c10::SmallVector<int64_t, 6> numbers_;
};

struct FlightGroup {
  std::string name;
  std::string description;
  std::vector<uint64_t> ranks; // numbers in the default group
  int rank = -1;               // of this process in the group
  uint64_t token = 0;          // unique among groups
};

/// A collective or a message. Texts are created on demand, because few of the
/// many calls are ever read.
struct FlightCall {
  uint64_t group = 0;    // from add_group()
  const char* name = ""; // of a collective; valid forever
  struct Peer {
    PeerOp::Kind kind;
    int rank;
    int tag;
  };
  std::optional<Peer> message;
  uint64_t collective = 0; // the last numbers of the group
  uint64_t exchange = 0;
  Shapes inputs;
  Shapes outputs;
  Milliseconds timeout{};
};

/// The last calls of a process, in a ring buffer, and earlier calls that have
/// not ended: the first ones, at most as many as the ring holds.
class FlightRecord {
 public:
  /// The record of this process, which is never destroyed. A forked child
  /// starts a new record, because the inherited one may be locked.
  static FlightRecord& get();

  /// Reads the settings. An invalid one is an error from here on.
  FlightRecord();

  /// False if the setting disables the record.
  bool keeps_calls() const {
    return capacity_ > 0;
  }

  /// `rank` is this process's rank in the default group.
  uint64_t add_group(FlightGroup group, uint64_t rank);
  /// Groups are described after their creation.
  void describe_group(uint64_t group, const std::string& description);
  /// The group is kept as long as one of its calls.
  void remove_group(uint64_t group);

  /// Adds calls that belong together; `Span` identifies them.
  struct Span {
    uint64_t first = 0;
    uint64_t end = 0;
  };
  Span add(c10::ArrayRef<FlightCall> calls, const Stack& stack);
  /// The stack for add(), if stacks are kept. May wait for the GIL, so the
  /// caller must not hold a lock.
  Stack stack() const;
  void set_started(Span span);
  /// `failure` is empty after success.
  void set_ended(Span span, const std::string& failure);

  std::string to_json(const std::string& reason) const;
  /// Writes the record to a file, by default the file of this rank. Returns the
  /// path. Throws on failure.
  std::string write(const std::string& reason, std::string path = {}) const;
  /// Writes the record after a failure. Returns a suffix for its message; empty
  /// if the setting disables files.
  std::string write_after(const std::string& failure) const;

 private:
  FlightRecord(size_t capacity, bool keeps_stacks, bool writes_files);

  struct Entry {
    uint64_t id = 0;
    FlightCall call;
    Stack stack;
    int64_t created = 0; // nanoseconds since 1970, 0 if not yet
    int64_t started = 0;
    int64_t ended = 0;
    std::string failure;
  };

  struct Group {
    FlightGroup group;
    uint64_t collectives = 0; // the last number
    bool is_removed = false;
  };

  Entry* find(uint64_t id);
  std::vector<const Entry*> entries() const; // in the order of the calls
  void append(std::string& json, const Entry& entry) const;
  std::string default_path() const;

  const size_t capacity_;
  const bool keeps_stacks_;
  const bool writes_files_;
  const int parent_; // the same for all ranks of a job on this host
  const Maker maker_;
  mutable std::mutex mutex_;
  std::vector<Entry> ring_;
  // Calls that had not ended when the ring reused their slots. A call that has
  // failed since stays, as the cause of later failures.
  std::map<uint64_t, Entry> unended_;
  uint64_t next_ = 1;
  std::map<uint64_t, Group> groups_;
  uint64_t next_group_ = 0;
  uint64_t rank_ = 0;
};

} // namespace openreg::distributed
