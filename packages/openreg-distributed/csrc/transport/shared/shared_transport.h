// SPDX-License-Identifier: BSD-3-Clause
// Collectives of ranks that share memory.
//
// A collective is a sequence of steps, in the same order on all ranks. In a
// step, a rank puts bytes into its slot, posts the step, waits for the ranks
// that it needs, and reads their slots. Two slots are enough, because a rank
// that has posted a step has read all data it needs from the previous step.
#pragma once

#include "transport/shared/mailbox.h"
#include "transport/shared/peers.h"
#include "transport/transport.h"

#include <memory>
#include <vector>

namespace openreg::distributed {

class SharedTransport final : public Transport {
 public:
  /// Null unless all ranks of the group that `rendezvous` connects can share
  /// memory and `wanted` is true on all. All ranks must call it. Sets `token`
  /// to a number that is unique to the group.
  static std::unique_ptr<SharedTransport> connect(
      Transport& rendezvous,
      int rank,
      int size,
      bool wanted,
      Milliseconds timeout,
      uint64_t& token);

  bool keeps_inputs() const override {
    return true;
  }
  bool can_attempt() const override {
    return true;
  }
  void set_timeout(Milliseconds timeout) override {
    timeout_.store(timeout);
  }
  void abort() override;
  void fail(const std::string& why) override;

  void broadcast(const Bytes& bytes, int root, Milliseconds timeout) override;
  void allreduce(
      const at::Tensor& buffer,
      const c10d::ReduceOp& op,
      Milliseconds timeout) override;
  void reduce(
      const at::Tensor& buffer,
      const c10d::ReduceOp& op,
      int root,
      Milliseconds timeout) override;
  void reduce_scatter(
      const at::Tensor& result,
      const at::Tensor& buffer,
      const std::vector<int64_t>& counts,
      const c10d::ReduceOp& op,
      Milliseconds timeout) override;
  void allgather(
      const BytesList& outputs,
      const Bytes& input,
      Milliseconds timeout) override;
  void gather(
      const BytesList& outputs,
      const Bytes& input,
      int root,
      Milliseconds timeout) override;
  void scatter(
      const Bytes& output,
      const BytesList& inputs,
      int root,
      Milliseconds timeout) override;
  void alltoall(
      const BytesList& outputs,
      const BytesList& inputs,
      Milliseconds timeout) override;
  void barrier(Milliseconds timeout) override;
  int exchange(const std::vector<Message>& messages) override;

 private:
  SharedTransport(
      std::unique_ptr<Segment> segment,
      int rank,
      std::vector<std::shared_ptr<const Process>> processes,
      Milliseconds timeout);

  /// A running collective.
  class Steps;

  int rank() const {
    return peers_.rank();
  }
  int size() const {
    return peers_.size();
  }

  Peers peers_;
  Patience patience_; // of attempts
  Mailbox mailbox_;
  uint64_t next_step_ = 0;
  bool is_given_ = false; // an attempt has posted the first step of a call
  std::atomic<Milliseconds> timeout_;
};

} // namespace openreg::distributed
