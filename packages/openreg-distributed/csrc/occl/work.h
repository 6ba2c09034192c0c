// SPDX-License-Identifier: BSD-3-Clause
// The Work of a collective: the place of its end in a stream.
#pragma once

#include "occl/caller_streams.h"
#include "occl/streams.h"

#include <torch/csrc/distributed/c10d/Work.hpp>

#include <atomic>
#include <condition_variable>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace openreg::distributed {

/// The outcome of a collective, which the stream's thread reports.
class Outcome {
 public:
  /// Only the first call counts. `is_abandoned`: unstoppable threads may still
  /// use the memory.
  void finish(
      std::exception_ptr failure,
      int source_rank = -1,
      bool is_abandoned = false);
  bool is_finished() const;
  bool is_abandoned() const;
  /// Null while it runs, and after success.
  std::exception_ptr failure() const;
  /// Waits; without a limit for 0. Returns whether it has finished.
  bool wait(std::chrono::milliseconds timeout) const;
  int source_rank() const;

 private:
  mutable std::mutex mutex_;
  mutable std::condition_variable condition_;
  std::atomic<bool> finished_ = false; // changed under the lock
  std::exception_ptr failure_;
  int source_rank_ = -1;
  bool is_abandoned_ = false;
};

/// The memory of a collective, kept until a stream waits for its end, as NCCL
/// does. Later uses of the memory are ordered after that wait, so the
/// collective may still run. If other threads than the stream's use it, which
/// an abort does not stop, it is kept until the collective has ended. It is
/// released on the caller's threads, because a storage can own a Python object,
/// whose destruction acquires the GIL.
class Memory {
 public:
  Memory(
      const std::vector<at::Tensor>& inputs,
      const std::vector<at::Tensor>& outputs,
      std::shared_ptr<const Outcome> outcome,
      bool until_end);
  /// Must be called when the current stream waits for the end.
  void give_up();
  /// Must be called at the end, or when no waiter is left. Leaks the memory if
  /// it may still be in use.
  void settle();

 private:
  std::vector<c10::Storage> take();

  const std::shared_ptr<const Outcome> outcome_;
  const bool until_end_;
  std::mutex mutex_;
  std::vector<c10::Storage> storages_;
};

/// As in `all_reduce number 3 of group '0' on rank 0 of 2`.
struct CallName {
  const char* name = "";
  uint64_t sequence = 0;
  std::shared_ptr<const std::string> group;
  int rank = -1;
  int size = 0;

  std::string text() const;
};

class OcclWork final : public c10d::Work {
 public:
  struct Issued {
    c10d::OpType type = c10d::OpType::UNKNOWN;
    std::string title;              // for the profiler
    CallName name;                  // for errors
    bool blocks_host = false;       // wait() blocks until the end
    std::vector<at::Tensor> inputs; // for the profiler
    std::vector<at::Tensor> outputs;
  };

  OcclWork(
      Issued issued,
      std::shared_ptr<Outcome> outcome,
      std::shared_ptr<Memory> memory);

  /// Called once, when the collective is enqueued after `place`.
  void set_issued(
      const c10::Stream& stream,
      std::shared_ptr<CallerStreams> callers,
      const CallerStreams::Place& place);
  /// Called instead if it has already run.
  void set_done(c10::DeviceIndex device);

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

  /// Null if it had run before it was issued.
  const std::shared_ptr<c10::Event>& end() const {
    return end_;
  }

 private:
  void wait_on_host(std::chrono::milliseconds timeout) const;

  Issued issued_;
  std::shared_ptr<Outcome> outcome_;
  std::shared_ptr<Memory> memory_;
  void make_future(const c10::Stream& stream);
  void end_recording();

  std::shared_ptr<c10::Event> end_;
  std::shared_ptr<CallerStreams> callers_;
  CallerStreams::Place place_;
  c10::DeviceIndex device_ = -1;
  std::mutex future_mutex_;
  c10::intrusive_ptr<c10::ivalue::Future> future_;
};

} // namespace openreg::distributed
