// SPDX-License-Identifier: BSD-3-Clause
// The flight record: what this rank did last, for the case that it fails.
//
// Its files have the fields of PyTorch's flight recorder, which has no place
// for other backends.
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

/// Sizes and types of tensors, without the tensors.
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
  // Of each: its type, how many sizes it has, and these. Few fit in here.
  c10::SmallVector<int64_t, 6> numbers_;
};

struct FlightGroup {
  std::string name;
  std::string description;
  std::vector<uint64_t> ranks; // as the default group counts them
  int rank = -1;               // this one, as the group counts
  uint64_t token = 0;          // no other group has it, whatever its name
};

/// A collective, or one message. Calls are many, and few are ever read: texts
/// are made when they are.
struct FlightCall {
  uint64_t group = 0;    // what add_group() returned
  const char* name = ""; // of a collective; valid for good
  struct Peer {
    PeerOp::Kind kind;
    int rank;
    int tag;
  };
  std::optional<Peer> message;
  uint64_t collective = 0; // numbers of the last ones of the group
  uint64_t exchange = 0;
  Shapes inputs;
  Shapes outputs;
  Milliseconds timeout{};
};

/// The last calls of a process, in a ring, and those before that have not
/// ended: the first ones, and as many at most as the ring has.
class FlightRecord {
 public:
  /// That of this process, which is never destroyed. A forked child begins a
  /// new one: it may have inherited this one locked.
  static FlightRecord& get();

  /// Reads the settings, of which a wrong one is an error from here on.
  FlightRecord();

  /// False if the setting says that nothing is kept.
  bool keeps_calls() const {
    return capacity_ > 0;
  }

  /// `rank` is this one, as the default group counts.
  uint64_t add_group(FlightGroup group, uint64_t rank);
  /// Groups are described after they are made.
  void describe_group(uint64_t group, const std::string& description);
  /// It is kept as long as a call of it is.
  void remove_group(uint64_t group);

  /// Takes up calls that are one, which `Span` names from then on.
  struct Span {
    uint64_t first = 0;
    uint64_t end = 0;
  };
  Span add(c10::ArrayRef<FlightCall> calls, const Stack& stack);
  /// The stack for add(), if they are kept. It may wait for the GIL, so the
  /// caller must hold no lock.
  Stack stack() const;
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
    uint64_t collectives = 0; // number of the last one
    bool is_removed = false;
  };

  Entry* find(uint64_t id);
  std::vector<const Entry*> entries() const; // in the order of the calls
  void append(std::string& json, const Entry& entry) const;
  std::string default_path() const;

  const size_t capacity_;
  const bool keeps_stacks_;
  const bool writes_files_;
  const int parent_; // which all ranks of a job on this host have
  const Maker maker_;
  mutable std::mutex mutex_;
  std::vector<Entry> ring_;
  // Which had not ended when the ring came round to them. One that has failed
  // since stays, as the cause of what came after it.
  std::map<uint64_t, Entry> unended_;
  uint64_t next_ = 1;
  std::map<uint64_t, Group> groups_;
  uint64_t next_group_ = 0;
  uint64_t rank_ = 0;
};

} // namespace openreg::distributed
