// SPDX-License-Identifier: BSD-3-Clause
// Enqueues collectives on a stream of the group, after the work of the caller's
// stream. The stream's thread runs the engine on the device memory.
#include "occl/backend.h"

#include "transport/reduction.h"

#include <openreg/openreg.h>

#include <ATen/ATen.h>
#include <ATen/EmptyTensor.h>
#include <ATen/MemoryOverlap.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <device_type.h>
#include <iterator>

namespace openreg::distributed {
namespace {

using c10d::OpType;

constexpr Milliseconds kShutdownPatience{10'000};
constexpr int kAnyPeer = -1;
constexpr int kAllPeers = -2; // the lane of batches

uint64_t bytes_of(const Tensors& tensors) {
  uint64_t sum = 0;
  for (const at::Tensor& tensor : tensors) {
    sum += tensor.nbytes();
  }
  return sum;
}

void check_tensor(const at::Tensor& tensor) {
  TORCH_CHECK(
      tensor.device().type() == device_type(),
      "occl needs tensors of ",
      c10::DeviceTypeName(device_type(), true),
      " devices, but got one of ",
      tensor.device(),
      "; for a group that takes both, call init_process_group(\"cpu:gloo,",
      c10::DeviceTypeName(device_type(), true),
      ":occl\")");
  TORCH_CHECK(
      tensor.layout() == c10::kStrided,
      "occl needs dense tensors, but got one of layout ",
      tensor.layout());
  const size_t needed = at::detail::computeStorageNbytes(
      tensor.sizes(),
      tensor.strides(),
      tensor.itemsize(),
      static_cast<size_t>(tensor.storage_offset()));
  TORCH_CHECK(
      tensor.numel() == 0 || needed <= tensor.storage().nbytes(),
      "occl: a tensor of shape ",
      tensor.sizes(),
      " and dtype ",
      tensor.scalar_type(),
      " needs ",
      needed,
      " bytes of its storage, which has ",
      tensor.storage().nbytes(),
      ": resize the storage before the call, with "
      "tensor.untyped_storage().resize_(",
      needed,
      ")");
}

/// A host tensor over the device memory of a tensor, with the same geometry. It
/// does not keep the memory alive, unless a storage is given.
at::Tensor view_of(
    const at::Tensor& tensor,
    void* device_pointer,
    const c10::Storage& kept = {}) {
  const auto options = at::TensorOptions().dtype(tensor.scalar_type());
  if (tensor.numel() == 0) {
    return at::empty(tensor.sizes(), options);
  }
  void* pointer = nullptr;
  check(orGetKernelPointer(&pointer, device_pointer));
  if (!kept) { // the usual case, and cheaper
    return at::from_blob(pointer, tensor.sizes(), tensor.strides(), options);
  }
  return at::from_blob(
      pointer, tensor.sizes(), tensor.strides(), [kept](void*) {}, options);
}

/// Also materializes copy-on-write memory, which only the host may do.
at::Tensor written(const at::Tensor& tensor) {
  check_tensor(tensor);
  TORCH_CHECK(
      !tensor.is_conj() && !tensor.is_neg(),
      "occl cannot write to a tensor that is a conjugate or negative view");
  at::assert_no_internal_overlap(tensor);
  return view_of(tensor, tensor.mutable_data_ptr());
}

at::Tensor read(const at::Tensor& tensor) {
  check_tensor(tensor);
  const at::Tensor plain = tensor.resolve_conj().resolve_neg();
  // A tensor created here is not shared.
  return view_of(
      plain,
      const_cast<void*>(plain.const_data_ptr()),
      plain.is_same(tensor) ? c10::Storage() : plain.storage());
}

Tensors written(const Tensors& tensors) {
  Tensors views;
  for (const at::Tensor& tensor : tensors) {
    views.push_back(written(tensor));
  }
  return views;
}

Tensors read(const Tensors& tensors) {
  Tensors views;
  for (const at::Tensor& tensor : tensors) {
    views.push_back(read(tensor));
  }
  return views;
}

const at::Tensor& only(const Tensors& tensors, const char* name) {
  TORCH_CHECK(
      tensors.size() == 1,
      "occl: ",
      name,
      " takes one tensor for each rank, but got ",
      tensors.size());
  return tensors.front();
}

void check_count(size_t found, int expected, const char* what) {
  TORCH_CHECK(
      found == static_cast<size_t>(expected),
      "occl: expected ",
      expected,
      " ",
      what,
      ", but got ",
      found);
}

/// An invalid rank would fail the group, and with it the other ranks.
void check_rank(int64_t rank, int size, const char* what) {
  TORCH_CHECK(
      rank >= 0 && rank < size,
      "occl: ",
      what,
      " is ",
      rank,
      ", but the group has ",
      size,
      " ranks");
}

/// A collective is ordered by the streams of a single device.
void check_devices(const Tensors& tensors, c10::DeviceIndex device) {
  for (const at::Tensor& tensor : tensors) {
    TORCH_CHECK(
        tensor.device().index() == device,
        "occl: the tensors of one call must be on one device, but are on ",
        c10::Device(device_type(), device),
        " and ",
        tensor.device());
  }
}

void check_same_type(const at::Tensor& one, const at::Tensor& other) {
  TORCH_CHECK(
      one.scalar_type() == other.scalar_type(),
      "occl: input and output differ in type: ",
      one.scalar_type(),
      " and ",
      other.scalar_type());
}

void check_scattered(
    const at::Tensor& part,
    const at::Tensor& whole,
    int ranks,
    const char* name) {
  check_same_type(part, whole);
  TORCH_CHECK(
      part.numel() * ranks == whole.numel(),
      "occl: ",
      name,
      " of ",
      ranks,
      " ranks needs tensors of n and ",
      ranks,
      " * n elements, but got ",
      part.numel(),
      " and ",
      whole.numel());
}

void check_output(
    const at::Tensor& input,
    const at::Tensor& output,
    const char* name) {
  TORCH_CHECK(
      output.numel() == input.numel(),
      "occl: ",
      name,
      " of a tensor of shape ",
      input.sizes(),
      " has an output of shape ",
      output.sizes());
}

void check_input(
    const at::Tensor& input,
    const at::Tensor& output,
    const char* name) {
  TORCH_CHECK(
      input.numel() == output.numel(),
      "occl: ",
      name,
      " to a tensor of shape ",
      output.sizes(),
      " has an input of shape ",
      input.sizes());
}

void check_pairs(
    const Tensors& inputs,
    const Tensors& outputs,
    const char* name) {
  TORCH_CHECK(
      !inputs.empty() && inputs.size() == outputs.size(),
      "occl: ",
      name,
      " needs as many inputs as outputs, at least one");
}

/// The factor of PREMUL_SUM may be a device tensor.
c10d::ReduceOp host_op(const c10d::ReduceOp& op) {
  auto* given = dynamic_cast<c10d::PreMulSumSupplement*>(op.supplement_.get());
  if (given == nullptr || !given->tensor_factor.defined() ||
      given->tensor_factor.is_cpu()) {
    return op;
  }
  return c10d::makePreMulSum(read(given->tensor_factor));
}

/// The sizes of a tensor's parts along its first dimension; equal if none are
/// given.
std::vector<int64_t> splits_of(
    const at::Tensor& tensor,
    const std::vector<int64_t>& sizes,
    int ranks) {
  if (sizes.empty()) {
    TORCH_CHECK(
        tensor.dim() > 0 && tensor.size(0) % ranks == 0,
        "occl: the first dimension of a tensor of shape ",
        tensor.sizes(),
        " cannot be divided among ",
        ranks,
        " ranks");
    return std::vector<int64_t>(
        static_cast<size_t>(ranks), tensor.size(0) / ranks);
  }
  check_count(sizes.size(), ranks, "split sizes");
  int64_t left = tensor.dim() > 0 ? tensor.size(0) : -1;
  for (const int64_t size : sizes) {
    TORCH_CHECK(
        size >= 0, "occl: split sizes cannot be negative, but one is ", size);
    left = size <= left ? left - size : -1; // their sum may be too large
  }
  TORCH_CHECK(
      left == 0,
      "occl: split sizes ",
      at::IntArrayRef(sizes),
      " do not add up to the first dimension of a tensor of shape ",
      tensor.sizes());
  return sizes;
}

} // namespace

OcclBackend::OcclBackend(
    c10::intrusive_ptr<c10d::Backend> gloo,
    c10::intrusive_ptr<OcclOptions> options,
    MakeEngine make_engine)
    : Backend(gloo->getRank(), gloo->getSize()),
      engine_(
          std::make_shared<Engine>(
              std::move(gloo),
              options->share_memory,
              options->timeout)),
      options_(std::move(options)),
      make_engine_(make_engine),
      group_name_(std::make_shared<const std::string>(options_->group_name)),
      flight_group_(
          FlightRecord::get().add_group(
              {options_->group_name,
               {},
               options_->global_ranks_in_group,
               rank_,
               engine_->token()},
              options_->global_ranks_in_group.at(static_cast<size_t>(rank_)))),
      patience_(Patience::of_attempts(size_)) {
  init();
}

OcclBackend::~OcclBackend() {
  if (engine_->is_inherited()) {
    return;
  }
  // Running calls would keep the group's threads. A Work that waits for them
  // reports the abort.
  const std::vector<Running> running = take_running();
  const bool idle =
      std::all_of(running.begin(), running.end(), [](const auto& each) {
        return each.outcome->is_finished();
      });
  if (!idle) {
    engine_->abort();
  }
  pending_->abort();
  for (const Running& each : running) {
    each.memory->settle();
  }
  FlightRecord::get().remove_group(flight_group_);
}

std::vector<OcclBackend::Running> OcclBackend::take_running() {
  std::vector<Running> running;
  const std::lock_guard lock(mutex_);
  for (auto& [key, lane] : lanes_) {
    std::move(
        lane->running.begin(),
        lane->running.end(),
        std::back_inserter(running));
    lane->running.clear();
  }
  return running;
}

OcclBackend::Ended::~Ended() {
  for (const Running& each : calls) {
    each.memory->settle();
  }
}

void OcclBackend::LaneState::take_ended(std::vector<Running>& ended) {
  while (!running.empty() && running.front().outcome->is_finished()) {
    ended.push_back(std::move(running.front()));
    running.pop_front();
  }
}

void OcclBackend::meet(const at::Tensor& all, const at::Tensor& own) {
  const auto device = device_for({});
  const OwnStream empty(device);
  const StreamScope scope(empty.get());
  Call call{OpType::ALLGATHER, "rendezvous"};
  call.device = device;
  call.blocks_host = true;
  const Operands with{{all}, {own}, options_->timeout};
  issue(std::move(call), [with](Engine& engine) {
    engine.allgather_flat(with);
    return -1;
  })->wait();
}

void OcclBackend::setTimeout(Milliseconds timeout) {
  const std::lock_guard lock(mutex_);
  options_->timeout = timeout;
  engine_->set_timeout(timeout);
}

uint64_t OcclBackend::getSequenceNumberForGroup() {
  const std::lock_guard lock(mutex_);
  return collectives_;
}

c10d::ErrorType OcclBackend::getError() {
  return engine_->failure().empty() ? c10d::ErrorType::SUCCESS
                                    : c10d::ErrorType::COMM_ERROR;
}

void OcclBackend::abort() {
  engine_->abort();
  pending_->abort();
}

void OcclBackend::shutdown() {
  if (engine_->is_inherited()) {
    return; // nothing runs in this process
  }
  const std::vector<Running> running = take_running();
  const auto end = std::chrono::steady_clock::now() + kShutdownPatience;
  bool idle = true;
  for (const Running& each : running) {
    const auto left = std::chrono::duration_cast<Milliseconds>(
        end - std::chrono::steady_clock::now());
    idle = idle && each.outcome->wait(std::max(left, Milliseconds(1)));
  }
  idle = pending_->wait_until(end) && idle;
  if (!idle) {
    TORCH_WARN(
        "occl: the group '",
        options_->group_name,
        "' was destroyed, but its work was still running after ",
        kShutdownPatience.count() / 1000,
        " s; the work is aborted");
  }
  abort();
  for (const Running& each : running) {
    each.memory->settle();
  }
}

c10::intrusive_ptr<c10d::Backend> OcclBackend::split(
    const c10::intrusive_ptr<c10d::Store>& store,
    const std::vector<int>& ranks,
    const c10::intrusive_ptr<c10d::Backend::Options>& options) {
  const auto found = std::find(ranks.begin(), ranks.end(), rank_);
  if (found == ranks.end()) {
    return nullptr;
  }
  auto own = c10::make_intrusive<OcclOptions>(options->timeout);
  own->group_name = options->group_name;
  const auto* given = dynamic_cast<const OcclOptions*>(options.get());
  own->share_memory = (given ? *given : *options_).share_memory;
  for (const int rank : ranks) {
    own->global_ranks_in_group.push_back(
        options_->global_ranks_in_group.at(static_cast<size_t>(rank)));
  }
  auto gloo =
      make_engine_(store, static_cast<int>(found - ranks.begin()), *own);
  return c10::make_intrusive<OcclBackend>(
      std::move(gloo), std::move(own), make_engine_);
}

OcclBackend::LaneState& OcclBackend::lane_of(const LaneKey& key) {
  auto& lane = lanes_[key];
  if (!lane) {
    lane = std::make_unique<LaneState>(key.first);
  }
  return *lane;
}

/// Whether a call may run on the calling thread, which is faster than waking
/// another thread. No pending work of the caller or of the group may precede
/// it.
bool OcclBackend::may_attempt(
    const Call& call,
    const std::optional<Lane>& lane,
    const c10::Stream& stream) {
  if (!engine_->can_attempt()) {
    return false;
  }
  switch (call.type) {
    case OpType::ALLREDUCE_COALESCED:
    case OpType::ALLGATHER_COALESCED:
    case OpType::REDUCE_SCATTER_TENSOR_COALESCED:
    case OpType::COALESCED:
    case OpType::RECVANYSOURCE:
      return false; // several messages, or a receive from any rank
    default:
      break;
  }
  const auto awaited = callers_->awaited(current_stream(call.device));
  if (bytes_of(call.inputs) + bytes_of(call.outputs) > kMostAttempted ||
      !awaited) {
    return false;
  }
  // Waits briefly for calls that are about to end, which is faster than queuing
  // behind them.
  return patience_.spin([&] {
    return progress_of(stream).is_idle() &&
        std::all_of(
               awaited->begin(),
               awaited->end(),
               [](const auto& end) { return is_reached(*end); }) &&
        (lane || !last_collective_ || is_reached(*last_collective_));
  });
}

FlightRecord::Span
OcclBackend::record(const Call& call, bool is_collective, const Stack& stack) {
  FlightRecord& flight = FlightRecord::get();
  if (!flight.keeps_calls() || engine_->is_inherited()) {
    return {};
  }
  if (!is_described_) { // PyTorch sets it after it has created the group
    flight.describe_group(flight_group_, getGroupDesc());
    is_described_ = true;
  }
  FlightCall common;
  common.group = flight_group_;
  common.collective = collectives_;
  common.exchange = exchanges_;
  common.timeout =
      call.timeout == c10d::kUnsetTimeout ? options_->timeout : call.timeout;
  c10::SmallVector<FlightCall, 1> calls;
  for (const PeerOp& op : call.messages) {
    FlightCall& each = calls.emplace_back(common);
    each.message = {op.kind, op.peer, op.tag};
    (op.kind == PeerOp::Kind::kSend ? each.inputs : each.outputs)
        .add(op.tensor);
  }
  if (is_collective) {
    FlightCall& each = calls.emplace_back(common);
    each.name = call.name;
    each.inputs.add(call.inputs);
    each.outputs.add(call.outputs);
  }
  return flight.add(calls, stack);
}

/// NCCL has a communicator only for that device, too.
void OcclBackend::check_bound_device(c10::DeviceIndex device) const {
  const auto bound = getBoundDeviceId();
  TORCH_CHECK_WITH(
      DistBackendError,
      !bound || bound->index() == device,
      "occl: Attempt to perform collective on tensor not on device passed to "
      "init_process_group: it is on ",
      c10::Device(device_type(), device),
      ", not on ",
      *bound);
}

OcclBackend::WorkPtr OcclBackend::issue(
    Call call,
    Task task,
    const std::optional<Lane>& lane,
    const std::vector<LaneKey>& beside) {
  const Tensors& tensors = call.inputs.empty() ? call.outputs : call.inputs;
  if (call.device == -1 && !tensors.empty()) {
    call.device = tensors.front().device().index();
  }
  check_devices(call.inputs, call.device);
  check_devices(call.outputs, call.device);
  check_bound_device(call.device);
  TORCH_CHECK_NOT_IMPLEMENTED(
      !is_captured(current_stream(call.device)),
      "occl: ",
      call.name,
      " cannot be captured in a graph");
  // gloo's sends and receives do not use memory after their end (gloo.cpp).
  const bool until_end = !lane && !engine_->shares_memory();
  auto outcome = std::make_shared<Outcome>();
  auto memory =
      std::make_shared<Memory>(call.inputs, call.outputs, outcome, until_end);
  Ended ended;
  const Stack stack = FlightRecord::get().stack();
  const std::lock_guard lock(mutex_);
  const CallName name{
      call.name,
      lane ? ++exchanges_ : ++collectives_,
      group_name_,
      rank_,
      size_};
  if (const std::string failure = engine_->failure(); !failure.empty()) {
    C10_THROW_ERROR(
        DistBackendError,
        c10::str(
            "occl: ",
            name.text(),
            " cannot run, the group has failed: ",
            failure));
  }
  FlightRecord::Span span;
  try {
    span = record(call, !lane, stack);
    LaneState& state = lane_of({call.device, lane});
    const c10::Stream stream = state.stream.get();
    for (auto& each : lanes_) {
      each.second->take_ended(ended.calls);
    }
    const bool attempts = may_attempt(call, lane, stream);
    OcclWork::Issued issued;
    issued.type = call.type;
    issued.title = std::string(kBackendName) + ":" + call.name;
    const orLaunchInfo info = describe_call(
        issued.title, bytes_of(call.inputs) + bytes_of(call.outputs));
    issued.name = name;
    issued.blocks_host = call.blocks_host;
    issued.inputs = std::move(call.inputs);
    issued.outputs = std::move(call.outputs);
    auto work =
        c10::make_intrusive<OcclWork>(std::move(issued), outcome, memory);
    auto execution = std::make_shared<Execution>(
        std::move(task), name, engine_, outcome, span);
    bool is_done = false;
    if (attempts) {
      const auto run = [&] {
        is_done = execution->attempt();
        if (!is_done) {
          forget_launch(); // the launch below is the call
        }
      };
      run_now(stream, run, info);
    }
    if (is_done) {
      work->set_done(call.device);
    } else {
      const auto place = callers_->follow(current_stream(call.device), stream);
      if (!lane && last_collective_) {
        // All devices share one order, which must be the same on all ranks.
        last_collective_->block(stream);
      }
      for (const LaneKey& other : beside) {
        record_event(lane_of(other).stream.get())->block(stream);
      }
      launch(
          stream,
          [execution] { execution->run(); },
          [execution] { execution->drop(); },
          info);
      work->set_issued(stream, callers_, place);
      state.running.push_back({std::move(outcome), std::move(memory)});
    }
    if (lane) {
      for (const LaneKey& other : beside) {
        work->end()->block(lane_of(other).stream.get());
      }
    } else {
      last_collective_ = work->end();
      if (batch_) {
        batch_->has_collectives = true;
        batch_->device = call.device;
      }
    }
    return work;
  } catch (std::exception& error) {
    // A launch that blocks the host throws the failure of the call.
    if (const auto failure = outcome ? outcome->failure() : nullptr) {
      std::rethrow_exception(failure);
    }
    // The other ranks would wait for this rank, which may not issue the call.
    const std::string what =
        c10::str("occl: ", name.text(), " could not be enqueued");
    const std::string where =
        fail(c10::str(what, ": ", text_of(error)), *engine_, span);
    if (auto* known = dynamic_cast<c10::Error*>(&error)) {
      known->add_context(what + where);
    }
    throw;
  }
}

template <typename CallOptions>
OcclBackend::WorkPtr OcclBackend::collective(
    Call call,
    const CallOptions& options,
    void (Engine::*run)(const Operands&),
    Operands with) {
  call.timeout = with.timeout = options.timeout;
  if constexpr (requires { options.rootRank; }) {
    check_rank(options.rootRank, size_, "the root");
    with.root = static_cast<int>(options.rootRank);
  }
  if constexpr (requires { options.reduceOp; }) {
    for (const at::Tensor& output : call.outputs) {
      check_reduction(options.reduceOp, output.scalar_type());
    }
  }
  with.outputs = written(call.outputs);
  if (!call.in_place) {
    with.inputs = read(call.inputs);
  }
  if constexpr (requires { options.reduceOp; }) {
    with.op = host_op(options.reduceOp);
  }
  return issue(std::move(call), [run, with = std::move(with)](Engine& engine) {
    (engine.*run)(with);
    return -1;
  });
}

OcclBackend::Call
OcclBackend::in_place(OpType type, const char* name, const Tensors& tensors) {
  Call call{type, name, tensors, tensors};
  call.in_place = true;
  return call;
}

const Tensors& OcclBackend::one_for_each_rank(
    const std::vector<Tensors>& lists,
    const char* what) const {
  check_count(lists.size(), 1, (std::string("list of ") + what).c_str());
  check_count(lists.front().size(), size_, what);
  return lists.front();
}

Tensors OcclBackend::list_of_root(
    const std::vector<Tensors>& lists,
    int64_t root,
    const char* what,
    const char* name) const {
  check_rank(root, size_, "the root");
  if (rank_ == root) {
    return one_for_each_rank(lists, what);
  }
  TORCH_CHECK(
      lists.empty(),
      "occl: ",
      what,
      " of ",
      name,
      " are accepted on the root only");
  return {};
}

OcclBackend::WorkPtr OcclBackend::broadcast(
    Tensors& tensors,
    const c10d::BroadcastOptions& options) {
  only(tensors, "broadcast");
  return collective(
      in_place(OpType::BROADCAST, "broadcast", tensors),
      options,
      &Engine::broadcast);
}

OcclBackend::WorkPtr OcclBackend::allreduce(
    Tensors& tensors,
    const c10d::AllreduceOptions& options) {
  only(tensors, "allreduce");
  return collective(
      in_place(OpType::ALLREDUCE, "all_reduce", tensors),
      options,
      &Engine::allreduce);
}

OcclBackend::WorkPtr OcclBackend::allreduce_coalesced(
    Tensors& tensors,
    const c10d::AllreduceCoalescedOptions& options) {
  TORCH_CHECK(!tensors.empty(), "occl: allreduce_coalesced got no tensor");
  return collective(
      in_place(OpType::ALLREDUCE_COALESCED, "allreduce_coalesced", tensors),
      options,
      &Engine::allreduce);
}

OcclBackend::WorkPtr OcclBackend::reduce(
    Tensors& tensors,
    const c10d::ReduceOptions& options) {
  only(tensors, "reduce");
  return collective(
      in_place(OpType::REDUCE, "reduce", tensors), options, &Engine::reduce);
}

OcclBackend::WorkPtr OcclBackend::allgather(
    std::vector<Tensors>& outputs,
    Tensors& inputs,
    const c10d::AllgatherOptions& options) {
  const at::Tensor& input = only(inputs, "allgather");
  const Tensors& out = one_for_each_rank(outputs, "outputs");
  for (const at::Tensor& output : out) {
    check_same_type(input, output);
  }
  check_output(input, out[static_cast<size_t>(rank_)], "allgather");
  return collective(
      {OpType::ALLGATHER, "all_gather", inputs, out},
      options,
      &Engine::allgather);
}

OcclBackend::WorkPtr OcclBackend::_allgather_base(
    at::Tensor& output,
    at::Tensor& input,
    const c10d::AllgatherOptions& options) {
  check_scattered(input, output, size_, "_allgather_base");
  return collective(
      {OpType::_ALLGATHER_BASE, "_all_gather_base", {input}, {output}},
      options,
      &Engine::allgather_flat);
}

OcclBackend::WorkPtr OcclBackend::allgather_coalesced(
    std::vector<Tensors>& outputs,
    Tensors& inputs,
    const c10d::AllgatherOptions& options) {
  TORCH_CHECK(!inputs.empty(), "occl: allgather_coalesced got no tensor");
  // One list for each rank, with an output for each input.
  check_count(outputs.size(), size_, "lists of outputs");
  Tensors all;
  for (const Tensors& list : outputs) {
    check_count(list.size(), static_cast<int>(inputs.size()), "outputs");
    for (size_t i = 0; i < inputs.size(); ++i) {
      check_same_type(inputs[i], list[i]);
      all.push_back(list[i]);
    }
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    check_output(
        inputs[i],
        outputs[static_cast<size_t>(rank_)][i],
        "allgather_coalesced");
  }
  return collective(
      {OpType::ALLGATHER_COALESCED, "all_gather_coalesced", inputs, all},
      options,
      &Engine::allgather);
}

OcclBackend::WorkPtr OcclBackend::allgather_into_tensor_coalesced(
    Tensors& outputs,
    Tensors& inputs,
    const c10d::AllgatherOptions& options) {
  constexpr const char* kName = "allgather_into_tensor_coalesced";
  check_pairs(inputs, outputs, kName);
  for (size_t i = 0; i < inputs.size(); ++i) {
    check_scattered(inputs[i], outputs[i], size_, kName);
  }
  return collective(
      {OpType::COALESCED, "all_gather_into_tensor_coalesced", inputs, outputs},
      options,
      &Engine::allgather_flat);
}

OcclBackend::WorkPtr OcclBackend::gather(
    std::vector<Tensors>& outputs,
    Tensors& inputs,
    const c10d::GatherOptions& options) {
  const at::Tensor& input = only(inputs, "gather");
  const Tensors out =
      list_of_root(outputs, options.rootRank, "outputs", "gather");
  for (const at::Tensor& output : out) {
    check_same_type(input, output);
    check_output(input, output, "gather");
  }
  return collective(
      {OpType::GATHER, "gather", inputs, out}, options, &Engine::gather);
}

#if TORCH_VERSION_MINOR >= 14
OcclBackend::WorkPtr OcclBackend::gather_single(
    at::Tensor& output,
    at::Tensor& input,
    const c10d::GatherOptions& options) {
  std::vector<Tensors> parts;
  if (options.rootRank == rank_) {
    check_scattered(input, output, size_, "gather_single");
    parts.push_back(output.view({size_, input.numel()}).unbind());
  }
  Tensors inputs{input};
  return gather(parts, inputs, options);
}
#endif

OcclBackend::WorkPtr OcclBackend::scatter(
    Tensors& outputs,
    std::vector<Tensors>& inputs,
    const c10d::ScatterOptions& options) {
  const at::Tensor& output = only(outputs, "scatter");
  const Tensors in =
      list_of_root(inputs, options.rootRank, "inputs", "scatter");
  for (const at::Tensor& input : in) {
    check_same_type(input, output);
    check_input(input, output, "scatter");
  }
  return collective(
      {OpType::SCATTER, "scatter", in, outputs}, options, &Engine::scatter);
}

OcclBackend::WorkPtr OcclBackend::reduce_scatter(
    Tensors& outputs,
    std::vector<Tensors>& inputs,
    const c10d::ReduceScatterOptions& options) {
  const at::Tensor& output = only(outputs, "reduce_scatter");
  const Tensors& in = one_for_each_rank(inputs, "inputs");
  for (const at::Tensor& input : in) {
    check_same_type(input, output);
  }
  check_input(in[static_cast<size_t>(rank_)], output, "reduce_scatter");
  return collective(
      {OpType::REDUCE_SCATTER, "reduce_scatter", in, outputs},
      options,
      &Engine::reduce_scatter);
}

OcclBackend::WorkPtr OcclBackend::_reduce_scatter_base(
    at::Tensor& output,
    at::Tensor& input,
    const c10d::ReduceScatterOptions& options) {
  check_scattered(output, input, size_, "_reduce_scatter_base");
  return collective(
      {OpType::_REDUCE_SCATTER_BASE, "_reduce_scatter_base", {input}, {output}},
      options,
      &Engine::reduce_scatter_flat);
}

OcclBackend::WorkPtr OcclBackend::reduce_scatter_tensor_coalesced(
    Tensors& outputs,
    Tensors& inputs,
    const c10d::ReduceScatterOptions& options) {
  constexpr const char* kName = "reduce_scatter_tensor_coalesced";
  check_pairs(inputs, outputs, kName);
  for (size_t i = 0; i < inputs.size(); ++i) {
    check_scattered(outputs[i], inputs[i], size_, kName);
  }
  return collective(
      {OpType::REDUCE_SCATTER_TENSOR_COALESCED, kName, inputs, outputs},
      options,
      &Engine::reduce_scatter_flat);
}

OcclBackend::WorkPtr OcclBackend::alltoall_base(
    at::Tensor& output,
    at::Tensor& input,
    std::vector<int64_t>& output_splits,
    std::vector<int64_t>& input_splits,
    const c10d::AllToAllOptions& options) {
  check_same_type(input, output);
  Operands with;
  with.output_splits = splits_of(output, output_splits, size_);
  with.input_splits = splits_of(input, input_splits, size_);
  return collective(
      {OpType::ALLTOALL_BASE, "all_to_all_base", {input}, {output}},
      options,
      &Engine::alltoall_flat,
      std::move(with));
}

OcclBackend::WorkPtr OcclBackend::alltoall(
    Tensors& outputs,
    Tensors& inputs,
    const c10d::AllToAllOptions& options) {
  check_count(inputs.size(), size_, "inputs");
  check_count(outputs.size(), size_, "outputs");
  for (size_t i = 0; i < inputs.size(); ++i) {
    check_same_type(inputs[i], outputs[i]);
  }
  return collective(
      {OpType::ALLTOALL, "all_to_all", inputs, outputs},
      options,
      &Engine::alltoall);
}

OcclBackend::WorkPtr
OcclBackend::point_to_point(Call call, PeerOp::Kind kind, int peer, int tag) {
  std::optional<Batch> given_up; // its tensors may need the GIL: not locked
  try {
    const at::Tensor& tensor = only(call.inputs, call.name);
    const bool sends = kind == PeerOp::Kind::kSend;
    const PeerOp op{kind, sends ? read(tensor) : written(tensor), peer, tag};
    const Lane lane{kind, peer};
    {
      const std::lock_guard lock(mutex_);
      if (kind != PeerOp::Kind::kRecvAny) {
        check_rank(peer, size_, "the peer");
        TORCH_CHECK(
            batch_ || peer != rank_,
            "occl: ",
            call.name,
            " to or from the same rank needs the matching operation in the "
            "same batch");
      }
      if (batch_) {
        batch_->device = tensor.device().index();
        batch_->ops.push_back(op);
        batch_->lanes.push_back(lane);
        batch_->tensors.push_back(tensor);
        return nullptr; // endCoalescing() returns one Work for all
      }
    }
    call.messages = {op};
    return issue(
        std::move(call),
        [op](Engine& engine) { return engine.exchange({op}); },
        lane);
  } catch (...) {
    const std::lock_guard lock(mutex_);
    given_up.swap(batch_);
    throw;
  }
}

OcclBackend::WorkPtr OcclBackend::send(Tensors& tensors, int peer, int tag) {
  return point_to_point(
      in_place(OpType::SEND, "send", tensors), PeerOp::Kind::kSend, peer, tag);
}

OcclBackend::WorkPtr OcclBackend::recv(Tensors& tensors, int peer, int tag) {
  return point_to_point(
      in_place(OpType::RECV, "recv", tensors), PeerOp::Kind::kRecv, peer, tag);
}

OcclBackend::WorkPtr OcclBackend::recvAnysource(Tensors& tensors, int tag) {
  return point_to_point(
      in_place(OpType::RECVANYSOURCE, "recvAnysource", tensors),
      PeerOp::Kind::kRecvAny,
      kAnyPeer,
      tag);
}

c10::DeviceIndex OcclBackend::device_for(
    const c10d::BarrierOptions& options) const {
  if (options.device && options.device->has_index() &&
      options.device->type() == device_type()) {
    return options.device->index();
  }
  if (!options.device_ids.empty()) {
    return static_cast<c10::DeviceIndex>(options.device_ids.front());
  }
  if (const auto bound = getBoundDeviceId()) {
    return bound->index();
  }
  return current_device();
}

OcclBackend::WorkPtr OcclBackend::barrier(const c10d::BarrierOptions& options) {
  Call call{OpType::BARRIER, "barrier"};
  call.device = device_for(options);
  call.blocks_host = true;
  return collective(std::move(call), options, &Engine::barrier);
}

void OcclBackend::startCoalescing() {
  // A Python error may have left an unfinished batch.
  std::optional<Batch> batch(std::in_place);
  const std::lock_guard lock(mutex_);
  batch_.swap(batch);
}

OcclBackend::WorkPtr OcclBackend::endCoalescing() {
  Batch batch;
  {
    const std::lock_guard lock(mutex_);
    TORCH_CHECK(
        batch_, "occl: endCoalescing() was called without startCoalescing()");
    batch = std::move(*batch_);
    batch_.reset();
  }
  if (batch.device == -1) {
    return nullptr; // the batch is empty
  }
  std::vector<LaneKey> beside;
  for (const Lane& lane : batch.lanes) {
    beside.emplace_back(batch.device, lane);
  }
  if (batch.has_collectives) {
    beside.emplace_back(batch.device, std::nullopt);
  }
  engine_->pairs_with_self(batch.ops); // before the other ranks are involved
  Call call = in_place(OpType::COALESCED, "coalesced", batch.tensors);
  call.device = batch.device;
  call.messages = batch.ops;
  return issue(
      std::move(call),
      [ops = std::move(batch.ops)](Engine& engine) {
        return engine.exchange(ops);
      },
      Lane{PeerOp::Kind::kSend, kAllPeers},
      beside);
}

} // namespace openreg::distributed
