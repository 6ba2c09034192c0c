// SPDX-License-Identifier: BSD-3-Clause
// The transport over gloo: between hosts, or without shared memory.
#pragma once

#include "base/maker.h"
#include "transport/transport.h"

#include <torch/csrc/distributed/c10d/Backend.hpp>

#include <memory>

namespace openreg::distributed {

class GlooTransport final : public Transport {
 public:
  explicit GlooTransport(c10::intrusive_ptr<c10d::Backend> gloo);
  /// Drops gloo. A stuck instance is destroyed on a separate thread.
  ~GlooTransport() override;

  int rank() const {
    return gloo_->getRank();
  }
  int size() const {
    return gloo_->getSize();
  }
  /// True while gloo's threads, which abort() does not stop, use memory.
  bool threads_run() const;

  bool keeps_inputs() const override {
    return false;
  }
  bool can_attempt() const override {
    return false;
  }
  void set_timeout(Milliseconds timeout) override {
    gloo_->setTimeout(timeout);
  }
  void abort() override;
  void fail(const std::string& /*why*/) override {}

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
  void wait(const c10::intrusive_ptr<c10d::Work>& work);
  void wait_for_peer(const c10::intrusive_ptr<c10d::Work>& work);

  struct Progress;

  Maker maker_;
  c10::intrusive_ptr<c10d::Backend> gloo_;
  std::shared_ptr<Progress> progress_; // gloo's threads may outlive this
};

} // namespace openreg::distributed
