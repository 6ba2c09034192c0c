// SPDX-License-Identifier: BSD-3-Clause
// occl: a group of ranks with OpenReg devices.
#pragma once

#include "base/patience.h"
#include "occl/caller_streams.h"
#include "occl/execution.h"
#include "occl/pending.h"
#include "occl/work.h"
#include "record/flight.h"
#include "transport/engine.h"

#include <torch/headeronly/version.h>

#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

namespace openreg::distributed {

struct OcclOptions final : c10d::Backend::Options {
  explicit OcclOptions(Milliseconds limit = kBackendDefaultTimeout)
      : c10d::Backend::Options(kBackendName, limit) {}
#if TORCH_VERSION_MINOR >= 14
  /// A new group gets a copy of its parent's options.
  c10::intrusive_ptr<c10d::Backend::Options> clone() const override {
    return c10::make_intrusive<OcclOptions>(*this);
  }
#endif
  bool share_memory = true; // between ranks of one host
};

class OcclBackend final : public c10d::Backend {
 public:
  /// Creates gloo for a subset of the group's ranks.
  using MakeEngine = c10::intrusive_ptr<c10d::Backend> (*)(
      const c10::intrusive_ptr<c10d::Store>& store,
      int rank,
      const OcclOptions& options);

  OcclBackend(
      c10::intrusive_ptr<c10d::Backend> gloo,
      c10::intrusive_ptr<OcclOptions> options,
      MakeEngine make_engine);
  ~OcclBackend() override;

  const std::string getBackendName() const override {
    return kBackendName;
  }
  c10::intrusive_ptr<c10d::Backend::Options> getBackendOptions() override {
    return options_;
  }
  bool supportsCoalescing() const override {
    return true;
  }
  bool supportsSplitting() const override {
    return true;
  }
  /// False if data goes through gloo.
  bool shares_memory() const {
    return engine_->shares_memory();
  }
  /// Waits for other ranks outside of collectives. Its address also identifies
  /// the group, because a later group can have the same name.
  const std::shared_ptr<Pending>& pending() const {
    return pending_;
  }
  /// Gathers the bytes of each rank's `own` as the rows of `all`; both are CPU
  /// tensors. It is a collective, but does not wait for the caller's work.
  void meet(const at::Tensor& all, const at::Tensor& own);
  void setTimeout(Milliseconds timeout) override;
  void setSequenceNumberForGroup() override {} // every rank starts at 0
  uint64_t getSequenceNumberForGroup() override;
  c10d::ErrorType getError() override;
  void abort() override;
  void shutdown() override;
  c10::intrusive_ptr<c10d::Backend> split(
      const c10::intrusive_ptr<c10d::Store>& store,
      const std::vector<int>& ranks,
      const c10::intrusive_ptr<c10d::Backend::Options>& options) override;

  using WorkPtr = c10::intrusive_ptr<c10d::Work>;

  WorkPtr broadcast(Tensors& tensors, const c10d::BroadcastOptions& options)
      override;
  WorkPtr allreduce(Tensors& tensors, const c10d::AllreduceOptions& options)
      override;
  WorkPtr allreduce_coalesced(
      Tensors& tensors,
      const c10d::AllreduceCoalescedOptions& options) override;
  WorkPtr reduce(Tensors& tensors, const c10d::ReduceOptions& options) override;
  WorkPtr allgather(
      std::vector<Tensors>& outputs,
      Tensors& inputs,
      const c10d::AllgatherOptions& options) override;
  WorkPtr _allgather_base(
      at::Tensor& output,
      at::Tensor& input,
      const c10d::AllgatherOptions& options) override;
  WorkPtr allgather_coalesced(
      std::vector<Tensors>& outputs,
      Tensors& inputs,
      const c10d::AllgatherOptions& options) override;
  WorkPtr allgather_into_tensor_coalesced(
      Tensors& outputs,
      Tensors& inputs,
      const c10d::AllgatherOptions& options) override;
  WorkPtr gather(
      std::vector<Tensors>& outputs,
      Tensors& inputs,
      const c10d::GatherOptions& options) override;
#if TORCH_VERSION_MINOR >= 14
  WorkPtr gather_single(
      at::Tensor& output,
      at::Tensor& input,
      const c10d::GatherOptions& options) override;
#endif
  WorkPtr scatter(
      Tensors& outputs,
      std::vector<Tensors>& inputs,
      const c10d::ScatterOptions& options) override;
  WorkPtr reduce_scatter(
      Tensors& outputs,
      std::vector<Tensors>& inputs,
      const c10d::ReduceScatterOptions& options) override;
  WorkPtr _reduce_scatter_base(
      at::Tensor& output,
      at::Tensor& input,
      const c10d::ReduceScatterOptions& options) override;
  WorkPtr reduce_scatter_tensor_coalesced(
      Tensors& outputs,
      Tensors& inputs,
      const c10d::ReduceScatterOptions& options) override;
  WorkPtr alltoall_base(
      at::Tensor& output,
      at::Tensor& input,
      std::vector<int64_t>& output_splits,
      std::vector<int64_t>& input_splits,
      const c10d::AllToAllOptions& options) override;
  WorkPtr alltoall(
      Tensors& outputs,
      Tensors& inputs,
      const c10d::AllToAllOptions& options) override;
  WorkPtr send(Tensors& tensors, int peer, int tag) override;
  WorkPtr recv(Tensors& tensors, int peer, int tag) override;
  WorkPtr recvAnysource(Tensors& tensors, int tag) override;
  WorkPtr barrier(const c10d::BarrierOptions& options) override;
  void startCoalescing() override;
  WorkPtr endCoalescing() override;

 private:
  using Task = Execution::Task;

  struct Call {
    c10d::OpType type;
    const char* name;
    Tensors inputs = {};
    Tensors outputs = {};
    c10::DeviceIndex device = -1;               // -1: the tensors' device
    Milliseconds timeout = c10d::kUnsetTimeout; // unset: the group's limit
    std::vector<PeerOp> messages = {};
    bool in_place = false; // inputs and outputs are the same tensors
    bool blocks_host = false;
  };

  // A lane is a stream of the group. There is one for collectives, whose order
  // is the same on all ranks, and per peer one for sends and one for receives.
  using Lane = std::pair<PeerOp::Kind, int>;
  using LaneKey = std::pair<c10::DeviceIndex, std::optional<Lane>>;

  WorkPtr issue(
      Call call,
      Task task,
      const std::optional<Lane>& lane = std::nullopt,
      const std::vector<LaneKey>& beside = {});
  /// Issues a call of `run` with c10d options.
  template <typename CallOptions>
  WorkPtr collective(
      Call call,
      const CallOptions& options,
      void (Engine::*run)(const Operands&),
      Operands with = {});
  static Call
  in_place(c10d::OpType type, const char* name, const Tensors& tensors);
  /// The tensors of a call that takes a single list of `what`.
  const Tensors& one_for_each_rank(
      const std::vector<Tensors>& lists,
      const char* what) const;
  /// The tensors of a call that takes the list only on its root.
  Tensors list_of_root(
      const std::vector<Tensors>& lists,
      int64_t root,
      const char* what,
      const char* name) const;
  /// If the call is refused, its batch is discarded, because it will not be
  /// ended.
  WorkPtr point_to_point(Call call, PeerOp::Kind kind, int peer, int tag);
  struct Running {
    std::shared_ptr<Outcome> outcome;
    std::shared_ptr<Memory> memory;
  };
  /// Releases the memory of finished calls in its destructor. That may acquire
  /// the GIL, so no lock may be held then.
  struct Ended {
    std::vector<Running> calls;

    Ended() = default;
    ~Ended();
    Ended(const Ended&) = delete;
    Ended& operator=(const Ended&) = delete;
  };
  struct LaneState {
    explicit LaneState(c10::DeviceIndex device) : stream(device) {}
    /// Takes finished calls, in order.
    void take_ended(std::vector<Running>& ended);

    OwnStream stream;
    std::deque<Running> running; // or just finished
  };
  LaneState& lane_of(const LaneKey& key);
  bool may_attempt(
      const Call& call,
      const std::optional<Lane>& lane,
      const c10::Stream& stream);
  std::vector<Running> take_running();
  c10::DeviceIndex device_for(const c10d::BarrierOptions& options) const;
  void check_bound_device(c10::DeviceIndex device) const;
  FlightRecord::Span
  record(const Call& call, bool is_collective, const Stack& stack);

  std::shared_ptr<Engine> engine_;
  const std::shared_ptr<Pending> pending_ = std::make_shared<Pending>();
  const c10::intrusive_ptr<OcclOptions> options_;
  const MakeEngine make_engine_;
  const std::shared_ptr<const std::string> group_name_;
  const uint64_t flight_group_;
  bool is_described_ = false;

  const std::shared_ptr<CallerStreams> callers_ =
      std::make_shared<CallerStreams>();
  Patience patience_; // of attempts

  std::mutex mutex_; // keeps the order of the numbers in the streams
  std::map<LaneKey, std::unique_ptr<LaneState>> lanes_;
  std::shared_ptr<c10::Event> last_collective_; // null if it has ended
  uint64_t collectives_ = 0;
  uint64_t exchanges_ = 0;
  struct Batch {
    std::vector<PeerOp> ops;
    std::vector<Lane> lanes;
    Tensors tensors;
    c10::DeviceIndex device = -1;
    bool has_collectives = false;
  };
  std::optional<Batch> batch_;
};

} // namespace openreg::distributed
