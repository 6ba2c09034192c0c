// SPDX-License-Identifier: BSD-3-Clause
// Collectives on host memory for all dtypes, shapes and strides.
//
// All functions block and run on stream threads.
#pragma once

#include "base/maker.h"
#include "transport/gloo.h"
#include "transport/transport.h"

#include <torch/csrc/distributed/c10d/Backend.hpp>

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace openreg::distributed {

/// The operands of a collective: tensors over host memory, and options.
struct Operands {
  Tensors outputs;
  Tensors inputs; // empty if the call works in place on its outputs
  Milliseconds timeout{};
  int root = 0;
  c10d::ReduceOp op = {};
  // Sizes along the first dimension, one per rank, which add up to it.
  std::vector<int64_t> output_splits = {};
  std::vector<int64_t> input_splits = {};
};

class Engine {
 public:
  /// All ranks must construct it together. `share_memory`: allows shared
  /// memory.
  Engine(
      c10::intrusive_ptr<c10d::Backend> gloo,
      bool share_memory,
      Milliseconds timeout);
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  int rank() const {
    return gloo_.rank();
  }
  int size() const {
    return gloo_.size();
  }
  /// The same on all ranks of this group, and unique among groups.
  uint64_t token() const {
    return token_;
  }
  /// Sets the limit of sends and receives.
  void set_timeout(Milliseconds timeout) {
    transport_->set_timeout(timeout);
  }

  // Coalesced calls pass several tensors, which are processed one by one.
  void broadcast(const Operands& with);
  void allreduce(const Operands& with);
  void reduce(const Operands& with);
  /// The outputs of each rank are consecutive, one per input. Each is as large
  /// as the input of its rank, and sizes may differ.
  void allgather(const Operands& with);
  /// Each output contains the data of all ranks.
  void allgather_flat(const Operands& with);
  /// There is one input per rank; sizes may differ.
  void reduce_scatter(const Operands& with);
  void reduce_scatter_flat(const Operands& with);
  /// Only the root has outputs.
  void gather(const Operands& with);
  /// Only the root has inputs.
  void scatter(const Operands& with);
  void alltoall(const Operands& with);
  void alltoall_flat(const Operands& with);
  void barrier(const Operands& with);
  using SelfPairs = std::vector<std::pair<const PeerOp*, const PeerOp*>>;
  /// Returns each receive of this rank from itself with its send. Throws if one
  /// has no counterpart, or if sizes or dtypes differ.
  SelfPairs pairs_with_self(const std::vector<PeerOp>& ops) const;
  /// Begins all operations and waits for all. Returns the source rank of the
  /// last receive from any rank, or -1.
  int exchange(const std::vector<PeerOp>& ops);

  /// True in a forked child, which is not a rank and cannot end calls.
  bool is_inherited() const {
    return !maker_.is_this_process();
  }
  /// Keeps the first failure; later work fails with it. Returns whether this is
  /// the first.
  bool fail(const std::string& why);
  /// The first failure; empty if there was none.
  std::string failure() const;
  /// Ends waiting and later calls with an error.
  void abort();

  /// Whether an Attempt is possible.
  bool can_attempt() const {
    return transport_->can_attempt();
  }
  bool shares_memory() const {
    return transport_ != &gloo_;
  }
  /// Whether threads that an abort does not stop use the calls' memory.
  bool threads_run() const {
    return gloo_.threads_run();
  }

 private:
  /// This rank's input for its own output.
  Bytes own_part(const at::Tensor& input, const BytesList& outputs) const;
  /// `input` has `counts[i]` elements for rank i.
  void reduce_scatter(
      const at::Tensor& output,
      const at::Tensor& input,
      const std::vector<int64_t>& counts,
      bool in_place,
      const Operands& with);

  Maker maker_;
  uint64_t token_ = 0;                // exchanged when the ranks connect
  GlooTransport gloo_;                // used to connect the ranks
  std::unique_ptr<Transport> shared_; // null unless all ranks are on one host
  Transport* transport_;              // one of the two

  mutable std::mutex mutex_;
  std::string failure_;
};

} // namespace openreg::distributed
