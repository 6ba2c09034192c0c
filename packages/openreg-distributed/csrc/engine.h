// SPDX-License-Identifier: BSD-3-Clause
// Collectives over host memory: gloo, for every type, shape and geometry.
//
// All of it blocks, and runs on the threads of streams.
#pragma once

#include <torch/csrc/distributed/c10d/Backend.hpp>

#include <memory>
#include <string>
#include <vector>

namespace openreg::distributed {

using Tensors = std::vector<at::Tensor>;
using Milliseconds = std::chrono::milliseconds;

/// A send or receive of a batch.
struct PeerOp {
  enum class Kind { kSend, kRecv, kRecvAny };
  Kind kind;
  at::Tensor tensor;
  int peer;
  int tag;
};

class Engine {
 public:
  explicit Engine(c10::intrusive_ptr<c10d::Backend> gloo);
  /// Drops gloo; one that is stuck is left to a thread of its own.
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  int rank() const {
    return gloo_->getRank();
  }
  int size() const {
    return gloo_->getSize();
  }
  /// The limit of sends and receives from now on.
  void set_timeout(Milliseconds timeout) {
    gloo_->setTimeout(timeout);
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
  /// `inputs` has one for each rank; the ranks' may differ in size.
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
  void barrier(Milliseconds timeout);
  /// Begins all of them, and waits for all. Returns the rank that the last
  /// receive from any rank got its data of, or -1.
  int exchange(const std::vector<PeerOp>& ops);

  /// Keeps the first failure; work that comes later fails with it.
  void fail(const std::string& why);
  /// The first failure; empty if there was none.
  std::string failure() const;
  /// Ends what waits, with an error, and all that comes.
  void abort();

 private:
  void wait(const c10::intrusive_ptr<c10d::Work>& work);
  void wait_for_peer(const c10::intrusive_ptr<c10d::Work>& work);
  /// The sum of what ranks give, or another reduction, into `reduction`.
  void reduce_all(Tensors buffers, c10d::ReduceOp op, Milliseconds timeout);

  struct Progress;

  c10::intrusive_ptr<c10d::Backend> gloo_;
  std::shared_ptr<Progress> progress_; // gloo's threads may outlive the engine
};

} // namespace openreg::distributed
