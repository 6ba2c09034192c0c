// SPDX-License-Identifier: BSD-3-Clause
// Collectives over host memory, for every type, shape and geometry.
//
// All of it blocks, and runs on the threads of streams.
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

/// What a collective works with: tensors of host memory, and its options.
struct Operands {
  Tensors outputs;
  Tensors inputs; // none if the call works in place, on its outputs
  Milliseconds timeout{};
  int root = 0;
  c10d::ReduceOp op = {};
  // Sizes in the first dimension, one for each rank, which add up to it.
  std::vector<int64_t> output_splits = {};
  std::vector<int64_t> input_splits = {};
};

class Engine {
 public:
  /// All ranks make theirs at the same time. `share_memory` if all may.
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
  /// The ranks of this group have the same, and no other group has it.
  uint64_t token() const {
    return token_;
  }
  /// The limit of sends and receives from now on.
  void set_timeout(Milliseconds timeout) {
    transport_->set_timeout(timeout);
  }

  // Coalesced calls give several tensors, which are worked on one by one.
  void broadcast(const Operands& with);
  void allreduce(const Operands& with);
  void reduce(const Operands& with);
  /// The outputs of each rank follow each other, one for each input. They may
  /// differ in size: each is as large as the input of its rank.
  void allgather(const Operands& with);
  /// Each output is a tensor for all ranks.
  void allgather_flat(const Operands& with);
  /// There is an input for each rank; these may differ in size.
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
  /// Each receive of this rank from itself, with its send. Throws if one lacks
  /// its counterpart, or if that is another tensor in size or type.
  SelfPairs pairs_with_self(const std::vector<PeerOp>& ops) const;
  /// Begins all of them, and waits for all. Returns the rank that the last
  /// receive from any rank got its data of, or -1.
  int exchange(const std::vector<PeerOp>& ops);

  /// True in a forked child, which is no rank and can end nothing.
  bool is_inherited() const {
    return !maker_.is_this_process();
  }
  /// Keeps the first failure; work that comes later fails with it. Returns
  /// whether this is the first.
  bool fail(const std::string& why);
  /// The first failure; empty if there was none.
  std::string failure() const;
  /// Ends what waits, with an error, and all that comes.
  void abort();

  /// Whether an Attempt can be made.
  bool can_attempt() const {
    return transport_->can_attempt();
  }
  bool shares_memory() const {
    return transport_ != &gloo_;
  }
  /// Whether threads that an abort does not stop use the memory of calls.
  bool threads_run() const {
    return gloo_.threads_run();
  }

 private:
  /// What this rank gives for its output among those of all.
  Bytes own_part(const at::Tensor& input, const BytesList& outputs) const;
  /// `input` has as many elements for each rank as `counts` says.
  void reduce_scatter(
      const at::Tensor& output,
      const at::Tensor& input,
      const std::vector<int64_t>& counts,
      bool in_place,
      const Operands& with);

  Maker maker_;
  uint64_t token_ = 0;                // which the ranks agree on as they meet
  GlooTransport gloo_;                // where the ranks meet
  std::unique_ptr<Transport> shared_; // null if they are not on one host
  Transport* transport_;              // one of these

  mutable std::mutex mutex_;
  std::string failure_;
};

} // namespace openreg::distributed
