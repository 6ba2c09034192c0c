// SPDX-License-Identifier: BSD-3-Clause
// What only moves data moves bytes, so that it has every type.
#include "engine.h"

#include "reduction.h"

#include <ATen/ATen.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <numeric>
#include <set>
#include <thread>
#include <utility>

namespace openreg::distributed {
namespace {

/// The bytes of a contiguous tensor, which they keep alive.
at::Tensor bytes_of(const at::Tensor& tensor) {
  const auto size = static_cast<int64_t>(tensor.nbytes());
  const auto options = at::TensorOptions().dtype(at::kByte);
  if (size == 0) {
    return at::empty({0}, options);
  }
  return at::from_blob(tensor.data_ptr(), {size}, [tensor](void*) {}, options);
}

at::Tensor new_bytes(int64_t size) {
  return at::empty({size}, at::TensorOptions().dtype(at::kByte));
}

int64_t byte_count(const at::Tensor& tensor) {
  return static_cast<int64_t>(tensor.nbytes());
}

/// Where a result goes: the tensor's memory, or a copy that store() brings
/// there.
class Target {
 public:
  explicit Target(const at::Tensor& tensor)
      : tensor_(tensor),
        dense_(tensor.contiguous()),
        bytes_(bytes_of(dense_)) {}

  const at::Tensor& bytes() const {
    return bytes_;
  }
  void store() const {
    if (!dense_.is_same(tensor_)) {
      tensor_.copy_(dense_);
    }
  }

 private:
  at::Tensor tensor_;
  at::Tensor dense_;
  at::Tensor bytes_;
};

template <typename Options>
Options with_timeout(Milliseconds timeout) {
  Options options;
  options.timeout = timeout;
  return options;
}

} // namespace

// What waits for gloo, and what ended.
struct Engine::Progress {
  mutable std::mutex mutex;
  std::condition_variable condition;
  std::string failure;
  bool aborted = false;
  size_t running = 0;          // collectives that gloo has not ended
  std::set<c10d::Work*> peers; // sends and receives that are waited for

  void check_aborted() const {
    if (aborted) {
      C10_THROW_ERROR(DistBackendError, "the group was aborted");
    }
  }
};

Engine::Engine(c10::intrusive_ptr<c10d::Backend> gloo)
    : gloo_(std::move(gloo)), progress_(std::make_shared<Progress>()) {}

Engine::~Engine() {
  const std::lock_guard lock(progress_->mutex);
  if (progress_->running != 0) {
    // gloo ends its threads with the last reference, and one of them waits for
    // another rank, at most until gloo's own time limit.
    std::thread([gloo = std::move(gloo_)]() mutable { gloo.reset(); }).detach();
  }
}

void Engine::wait(const c10::intrusive_ptr<c10d::Work>& work) {
  auto done = std::make_shared<bool>(false);
  {
    const std::lock_guard lock(progress_->mutex);
    ++progress_->running;
  }
  work->getFuture()->addCallback(
      [done, progress = progress_](c10::ivalue::Future&) {
        {
          const std::lock_guard lock(progress->mutex);
          *done = true;
          --progress->running;
        }
        progress->condition.notify_all();
      },
      /*uses_future=*/false);
  {
    std::unique_lock lock(progress_->mutex);
    progress_->condition.wait(
        lock, [&] { return *done || progress_->aborted; });
    if (!*done) {
      progress_->check_aborted();
    }
  }
  work->wait(); // throws what went wrong
}

void Engine::wait_for_peer(const c10::intrusive_ptr<c10d::Work>& work) {
  {
    const std::lock_guard lock(progress_->mutex);
    progress_->check_aborted();
    progress_->peers.insert(work.get());
  }
  const auto remove = [&] {
    const std::lock_guard lock(progress_->mutex);
    progress_->peers.erase(work.get());
  };
  bool received = false;
  try {
    received = work->wait();
  } catch (...) {
    remove();
    throw;
  }
  remove();
  if (!received) {
    C10_THROW_ERROR(DistBackendError, "the group was aborted");
  }
}

void Engine::fail(const std::string& why) {
  const std::lock_guard lock(progress_->mutex);
  if (progress_->failure.empty()) {
    progress_->failure = why;
  }
}

std::string Engine::failure() const {
  const std::lock_guard lock(progress_->mutex);
  return progress_->failure;
}

void Engine::abort() {
  {
    const std::lock_guard lock(progress_->mutex);
    progress_->aborted = true;
    if (progress_->failure.empty()) {
      progress_->failure = "the group was aborted";
    }
    for (c10d::Work* work : progress_->peers) {
      work->abort();
    }
  }
  progress_->condition.notify_all();
}

void Engine::broadcast(
    const at::Tensor& tensor,
    int root,
    Milliseconds timeout) {
  if (tensor.numel() == 0) {
    return;
  }
  const Target target(tensor);
  auto options = with_timeout<c10d::BroadcastOptions>(timeout);
  options.rootRank = root;
  Tensors buffers{target.bytes()};
  wait(gloo_->broadcast(buffers, options));
  if (rank() != root) {
    target.store();
  }
}

void Engine::reduce_all(
    Tensors buffers,
    c10d::ReduceOp op,
    Milliseconds timeout) {
  auto options = with_timeout<c10d::AllreduceOptions>(timeout);
  options.reduceOp = std::move(op);
  wait(gloo_->allreduce(buffers, options));
}

void Engine::allreduce(
    const at::Tensor& tensor,
    const c10d::ReduceOp& op,
    Milliseconds timeout) {
  if (tensor.numel() == 0) {
    return;
  }
  const Reduction reduction(tensor, op, size(), true);
  reduce_all({reduction.buffer()}, reduction.gloo_op(), timeout);
  reduction.store(tensor);
}

void Engine::reduce(
    const at::Tensor& tensor,
    const c10d::ReduceOp& op,
    int root,
    Milliseconds timeout) {
  if (tensor.numel() == 0) {
    return;
  }
  // gloo leaves parts of the result in what the other ranks give.
  const Reduction reduction(tensor, op, size(), rank() == root);
  auto options = with_timeout<c10d::ReduceOptions>(timeout);
  options.rootRank = root;
  options.reduceOp = reduction.gloo_op();
  Tensors buffers{reduction.buffer()};
  wait(gloo_->reduce(buffers, options));
  if (rank() == root) {
    reduction.store(tensor);
  }
}

void Engine::allgather(
    const Tensors& outputs,
    const at::Tensor& input,
    Milliseconds timeout) {
  int64_t largest = 0;
  for (const at::Tensor& output : outputs) {
    largest = std::max(largest, byte_count(output));
  }
  if (largest == 0) {
    return;
  }
  const at::Tensor given = new_bytes(largest);
  const at::Tensor dense = input.contiguous();
  given.narrow(0, 0, byte_count(dense)).copy_(bytes_of(dense));
  const at::Tensor all = new_bytes(largest * size());
  allgather_flat(all, given, timeout);
  for (size_t i = 0; i < outputs.size(); ++i) {
    const Target target(outputs[i]);
    target.bytes().copy_(all.narrow(
        0, static_cast<int64_t>(i) * largest, byte_count(outputs[i])));
    target.store();
  }
}

void Engine::allgather_flat(
    const at::Tensor& output,
    const at::Tensor& input,
    Milliseconds timeout) {
  if (output.numel() == 0) {
    return;
  }
  const Target target(output);
  at::Tensor out = target.bytes();
  // The input may be a part of the output.
  at::Tensor in = bytes_of(input.contiguous()).clone();
  wait(gloo_->_allgather_base(
      out, in, with_timeout<c10d::AllgatherOptions>(timeout)));
  target.store();
}

void Engine::reduce_scatter(
    const at::Tensor& output,
    const Tensors& inputs,
    const c10d::ReduceOp& op,
    Milliseconds timeout) {
  Tensors flat;
  int64_t first = 0;
  for (size_t i = 0; i < inputs.size(); ++i) {
    flat.push_back(inputs[i].reshape({-1}));
    if (static_cast<int>(i) < rank()) {
      first += inputs[i].numel();
    }
  }
  const at::Tensor all = at::cat(flat);
  if (all.numel() == 0) {
    return;
  }
  const Reduction reduction(all, op, size(), true);
  reduce_all({reduction.buffer()}, reduction.gloo_op(), timeout);
  reduction.store(output, first);
}

void Engine::reduce_scatter_flat(
    const at::Tensor& output,
    const at::Tensor& input,
    const c10d::ReduceOp& op,
    Milliseconds timeout) {
  if (input.numel() == 0) {
    return;
  }
  const Reduction reduction(input, op, size(), false);
  reduce_all({reduction.buffer()}, reduction.gloo_op(), timeout);
  reduction.store(output, output.numel() * rank());
}

void Engine::gather(
    const Tensors& outputs,
    const at::Tensor& input,
    int root,
    Milliseconds timeout) {
  if (input.numel() == 0) {
    return;
  }
  std::vector<Target> targets(outputs.begin(), outputs.end());
  std::vector<Tensors> out;
  if (rank() == root) {
    out.emplace_back();
    for (const Target& target : targets) {
      out.front().push_back(target.bytes());
    }
  }
  auto options = with_timeout<c10d::GatherOptions>(timeout);
  options.rootRank = root;
  Tensors in{bytes_of(input.contiguous())};
  wait(gloo_->gather(out, in, options));
  for (const Target& target : targets) {
    target.store();
  }
}

void Engine::scatter(
    const at::Tensor& output,
    const Tensors& inputs,
    int root,
    Milliseconds timeout) {
  if (output.numel() == 0) {
    return;
  }
  std::vector<Tensors> in;
  if (rank() == root) {
    in.emplace_back();
    for (const at::Tensor& input : inputs) {
      in.front().push_back(bytes_of(input.contiguous()));
    }
  }
  const Target target(output);
  auto options = with_timeout<c10d::ScatterOptions>(timeout);
  options.rootRank = root;
  Tensors out{target.bytes()};
  wait(gloo_->scatter(out, in, options));
  target.store();
}

void Engine::alltoall(
    const Tensors& outputs,
    const Tensors& inputs,
    Milliseconds timeout) {
  const auto sizes = [](const Tensors& tensors) {
    std::vector<int64_t> counts;
    for (const at::Tensor& tensor : tensors) {
      counts.push_back(byte_count(tensor));
    }
    return counts;
  };
  const std::vector<int64_t> out_sizes = sizes(outputs);
  Tensors given;
  for (const at::Tensor& input : inputs) {
    given.push_back(bytes_of(input.contiguous()));
  }
  at::Tensor in = at::cat(given);
  at::Tensor out = new_bytes(
      std::accumulate(out_sizes.begin(), out_sizes.end(), int64_t{0}));
  std::vector<int64_t> out_counts = out_sizes; // gloo takes what they hold
  std::vector<int64_t> in_counts = sizes(inputs);
  wait(gloo_->alltoall_base(
      out,
      in,
      out_counts,
      in_counts,
      with_timeout<c10d::AllToAllOptions>(timeout)));
  int64_t first = 0;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const Target target(outputs[i]);
    target.bytes().copy_(out.narrow(0, first, out_sizes[i]));
    target.store();
    first += out_sizes[i];
  }
}

void Engine::barrier(Milliseconds timeout) {
  wait(gloo_->barrier(with_timeout<c10d::BarrierOptions>(timeout)));
}

int Engine::exchange(const std::vector<PeerOp>& ops) {
  struct Pending {
    c10::intrusive_ptr<c10d::Work> work;
    PeerOp::Kind kind;
    Target target;
  };
  std::vector<Pending> pending;
  std::vector<const PeerOp*> to_self;
  std::vector<const PeerOp*> from_self;
  for (const PeerOp& op : ops) {
    const bool sends = op.kind == PeerOp::Kind::kSend;
    if (op.kind != PeerOp::Kind::kRecvAny && op.peer == rank()) {
      (sends ? to_self : from_self).push_back(&op); // gloo has no such pair
      continue;
    }
    Target target(op.tensor);
    Tensors buffers{target.bytes()};
    auto work = sends ? gloo_->send(buffers, op.peer, op.tag)
        : op.kind == PeerOp::Kind::kRecv
        ? gloo_->recv(buffers, op.peer, op.tag)
        : gloo_->recvAnysource(buffers, op.tag);
    pending.push_back({std::move(work), op.kind, std::move(target)});
  }
  for (const PeerOp* receive : from_self) {
    const auto found =
        std::find_if(to_self.begin(), to_self.end(), [&](const PeerOp* send) {
          return send->tag == receive->tag;
        });
    TORCH_CHECK(
        found != to_self.end(),
        "a receive of the rank itself with tag ",
        receive->tag,
        " has no send in its batch");
    receive->tensor.copy_((*found)->tensor);
    to_self.erase(found);
  }
  TORCH_CHECK(
      to_self.empty(), "a send to the rank itself has no receive in its batch");
  int source = -1;
  for (const Pending& each : pending) {
    wait_for_peer(each.work);
    if (each.kind != PeerOp::Kind::kSend) {
      each.target.store();
    }
    if (each.kind == PeerOp::Kind::kRecvAny) {
      source = each.work->sourceRank();
    }
  }
  return source;
}

} // namespace openreg::distributed
