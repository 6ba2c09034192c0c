// SPDX-License-Identifier: BSD-3-Clause
// What a collective returns: the place of its end in a stream.
#pragma once

#include "streams.h"

#include <torch/csrc/distributed/c10d/Work.hpp>

#include <condition_variable>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace openreg::distributed {

/// How a collective ended; what the stream's thread tells the others.
class Outcome {
 public:
  /// Only the first call counts.
  void finish(std::exception_ptr failure, int source_rank = -1);
  bool is_finished() const;
  /// Null while it runs, and if it succeeded.
  std::exception_ptr failure() const;
  /// Waits; without a limit for 0. Returns whether it has finished.
  bool wait(std::chrono::milliseconds timeout) const;
  int source_rank() const;

 private:
  mutable std::mutex mutex_;
  mutable std::condition_variable condition_;
  bool finished_ = false;
  std::exception_ptr failure_;
  int source_rank_ = -1;
};

/// The memory of a collective, kept until a stream waits for its end, as NCCL
/// does. What that stream's memory is used for after that comes later, so that
/// the collective may still run. It is given up on threads of the caller: a
/// storage can have an object of Python, whose end takes the GIL.
class Memory {
 public:
  Memory(
      const std::vector<at::Tensor>& inputs,
      const std::vector<at::Tensor>& outputs);
  /// To be called when the current stream waits for the end.
  void give_up();
  /// Keeps the memory for ever if the collective has not ended: nobody is left
  /// to wait for it.
  void leave_if_used(const Outcome& outcome);

 private:
  std::vector<c10::Storage> take();

  std::mutex mutex_;
  std::vector<c10::Storage> storages_;
};

class OcclWork final : public c10d::Work {
 public:
  struct Issued {
    c10d::OpType type = c10d::OpType::UNKNOWN;
    std::string title; // as the profiler shows it
    std::string name;  // as errors call it
    uint64_t sequence = 0;
    int rank = -1;
    bool blocks_host = false;       // wait() returns when it is done
    std::vector<at::Tensor> inputs; // for the profiler
    std::vector<at::Tensor> outputs;
  };

  OcclWork(
      Issued issued,
      std::shared_ptr<Outcome> outcome,
      std::shared_ptr<Memory> memory);

  /// Called once, when the collective is in the stream.
  void set_issued(const c10::Stream& stream);

  bool isCompleted() override;
  bool isSuccess() const override;
  std::exception_ptr exception() const override;
  int sourceRank() const override;
  std::vector<at::Tensor> result() override;
  void synchronize() override;
  bool wait(std::chrono::milliseconds timeout) override;
  void blockCurrentStream() override;
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override;
  uint64_t getSequencenumber() const override;

  const std::shared_ptr<c10::Event>& end() const {
    return end_;
  }

 private:
  void wait_on_host(std::chrono::milliseconds timeout) const;

  Issued issued_;
  std::shared_ptr<Outcome> outcome_;
  std::shared_ptr<Memory> memory_;
  std::shared_ptr<c10::Event> end_;
  c10::intrusive_ptr<c10::ivalue::Future> future_;
};

} // namespace openreg::distributed
