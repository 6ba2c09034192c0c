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

  void broadcast(const at::Tensor& tensor, int root, Milliseconds timeout);
  void allreduce(
      const at::Tensor& tensor,
      const c10d::ReduceOp& op,
      Milliseconds timeout);
  void reduce(
      const at::Tensor& tensor,
      const c10d::ReduceOp& op,
      int root,
      Milliseconds timeout);
  /// Outputs may differ in size: each as large as the input of its rank.
  void allgather(
      const Tensors& outputs,
      const at::Tensor& input,
      Milliseconds timeout);
  void allgather_flat(
      const at::Tensor& output,
      const at::Tensor& input,
      Milliseconds timeout);
  /// `inputs` has one for each rank; these may differ in size.
  void reduce_scatter(
      const at::Tensor& output,
      const Tensors& inputs,
      const c10d::ReduceOp& op,
      Milliseconds timeout);
  void reduce_scatter_flat(
      const at::Tensor& output,
      const at::Tensor& input,
      const c10d::ReduceOp& op,
      Milliseconds timeout);
  /// `outputs` is empty but on the root.
  void gather(
      const Tensors& outputs,
      const at::Tensor& input,
      int root,
      Milliseconds timeout);
  /// `inputs` is empty but on the root.
  void scatter(
      const at::Tensor& output,
      const Tensors& inputs,
      int root,
      Milliseconds timeout);
  void
  alltoall(const Tensors& outputs, const Tensors& inputs, Milliseconds timeout);
  /// The splits, one for each rank, are sizes in the first dimension, and add
  /// up to it.
  void alltoall_flat(
      const at::Tensor& output,
      const at::Tensor& input,
      const std::vector<int64_t>& output_splits,
      const std::vector<int64_t>& input_splits,
      Milliseconds timeout);
  void barrier(Milliseconds timeout);
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
  void reduce_scatter(
      const at::Tensor& output,
      const at::Tensor& input,
      const std::vector<int64_t>& counts,
      bool in_place,
      const c10d::ReduceOp& op,
      Milliseconds timeout);

  Maker maker_;
  uint64_t token_ = 0;                // which the ranks agree on as they meet
  GlooTransport gloo_;                // where the ranks meet
  std::unique_ptr<Transport> shared_; // null if they are not on one host
  Transport* transport_;              // one of these

  mutable std::mutex mutex_;
  std::string failure_;
};

} // namespace openreg::distributed
