// SPDX-License-Identifier: BSD-3-Clause
// Waiting for gloo, which has threads of its own, so that abort() can end it.
#include "gloo.h"

#include <ATen/ATen.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <numeric>
#include <optional>
#include <set>
#include <thread>
#include <utility>

namespace openreg::distributed {
namespace {

template <typename Options>
Options with_timeout(Milliseconds timeout) {
  Options options;
  options.timeout = timeout;
  return options;
}

at::Tensor new_bytes(int64_t size) {
  return at::empty({size}, at::TensorOptions().dtype(at::kByte));
}

std::vector<int64_t> sizes_of(const Tensors& tensors) {
  std::vector<int64_t> sizes;
  for (const at::Tensor& tensor : tensors) {
    sizes.push_back(tensor.numel());
  }
  return sizes;
}

int64_t sum_of(const std::vector<int64_t>& sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), int64_t{0});
}

/// Vectors of bytes that follow each other in memory as one, without a copy.
std::optional<at::Tensor> whole_of(const Tensors& tensors) {
  std::byte* begin = nullptr;
  std::byte* end = nullptr;
  for (const at::Tensor& tensor : tensors) {
    if (tensor.numel() == 0) {
      continue;
    }
    auto* data = static_cast<std::byte*>(tensor.data_ptr());
    if (begin == nullptr) {
      begin = data;
    } else if (data != end) {
      return std::nullopt;
    }
    end = data + tensor.numel();
  }
  if (begin == nullptr) {
    return std::nullopt;
  }
  return at::from_blob(
      begin,
      {end - begin},
      [tensors](void*) {},
      at::TensorOptions().dtype(at::kByte));
}

} // namespace

// What waits for gloo, and what ended.
struct GlooTransport::Progress {
  std::mutex mutex;
  std::condition_variable condition;
  bool aborted = false;
  size_t running = 0;          // collectives that gloo has not ended
  std::set<c10d::Work*> peers; // sends and receives that are waited for

  void check_aborted() const {
    if (aborted) {
      C10_THROW_ERROR(DistBackendError, "the group was aborted");
    }
  }
};

GlooTransport::GlooTransport(c10::intrusive_ptr<c10d::Backend> gloo)
    : gloo_(std::move(gloo)), progress_(std::make_shared<Progress>()) {}

GlooTransport::~GlooTransport() {
  if (!maker_.is_this_process()) {
    // gloo would wait for the end of threads that are not in this process.
    static_cast<void>(gloo_.release());
    return;
  }
  const std::lock_guard lock(progress_->mutex);
  if (progress_->running != 0) {
    // gloo ends its threads with the last reference, and one of them waits for
    // another rank, at most until gloo's own time limit.
    std::thread([gloo = std::move(gloo_)]() mutable { gloo.reset(); }).detach();
  }
}

void GlooTransport::wait(const c10::intrusive_ptr<c10d::Work>& work) {
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

void GlooTransport::wait_for_peer(const c10::intrusive_ptr<c10d::Work>& work) {
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

void GlooTransport::abort() {
  {
    const std::lock_guard lock(progress_->mutex);
    progress_->aborted = true;
    for (c10d::Work* work : progress_->peers) {
      work->abort();
    }
  }
  progress_->condition.notify_all();
}

void GlooTransport::broadcast(
    const at::Tensor& bytes,
    int root,
    Milliseconds timeout) {
  auto options = with_timeout<c10d::BroadcastOptions>(timeout);
  options.rootRank = root;
  Tensors buffers{bytes};
  wait(gloo_->broadcast(buffers, options));
}

void GlooTransport::allreduce(
    const at::Tensor& buffer,
    const c10d::ReduceOp& op,
    Milliseconds timeout) {
  auto options = with_timeout<c10d::AllreduceOptions>(timeout);
  options.reduceOp = op;
  Tensors buffers{buffer};
  wait(gloo_->allreduce(buffers, options));
}

void GlooTransport::reduce(
    const at::Tensor& buffer,
    const c10d::ReduceOp& op,
    int root,
    Milliseconds timeout) {
  auto options = with_timeout<c10d::ReduceOptions>(timeout);
  options.rootRank = root;
  options.reduceOp = op;
  Tensors buffers{buffer};
  wait(gloo_->reduce(buffers, options));
}

void GlooTransport::reduce_scatter(
    const at::Tensor& result,
    const at::Tensor& buffer,
    const std::vector<int64_t>& counts,
    const c10d::ReduceOp& op,
    Milliseconds timeout) {
  allreduce(buffer, op, timeout);
  const int64_t first =
      std::accumulate(counts.begin(), counts.begin() + rank(), int64_t{0});
  result.copy_(buffer.narrow(0, first, result.numel()));
}

void GlooTransport::allgather(
    const Tensors& outputs,
    const at::Tensor& input,
    Milliseconds timeout) {
  const auto options = with_timeout<c10d::AllgatherOptions>(timeout);
  const std::vector<int64_t> sizes = sizes_of(outputs);
  const int64_t largest = *std::max_element(sizes.begin(), sizes.end());
  std::vector<Tensors> out{outputs};
  Tensors in{input};
  if (std::count(sizes.begin(), sizes.end(), largest) == size()) {
    wait(gloo_->allgather(out, in, options));
    return;
  }
  // gloo has one size for all.
  out.front() = new_bytes(largest * size()).chunk(size());
  in.front() = new_bytes(largest);
  in.front().narrow(0, 0, input.numel()).copy_(input);
  wait(gloo_->allgather(out, in, options));
  for (size_t i = 0; i < outputs.size(); ++i) {
    outputs[i].copy_(out.front()[i].narrow(0, 0, sizes[i]));
  }
}

void GlooTransport::gather(
    const Tensors& outputs,
    const at::Tensor& input,
    int root,
    Milliseconds timeout) {
  auto options = with_timeout<c10d::GatherOptions>(timeout);
  options.rootRank = root;
  std::vector<Tensors> out;
  if (rank() == root) {
    out.push_back(outputs);
  }
  Tensors in{input};
  wait(gloo_->gather(out, in, options));
}

void GlooTransport::scatter(
    const at::Tensor& output,
    const Tensors& inputs,
    int root,
    Milliseconds timeout) {
  auto options = with_timeout<c10d::ScatterOptions>(timeout);
  options.rootRank = root;
  std::vector<Tensors> in;
  if (rank() == root) {
    in.push_back(inputs);
  }
  Tensors out{output};
  wait(gloo_->scatter(out, in, options));
}

void GlooTransport::alltoall(
    const Tensors& outputs,
    const Tensors& inputs,
    Milliseconds timeout) {
  std::vector<int64_t> out_sizes = sizes_of(outputs);
  std::vector<int64_t> in_sizes = sizes_of(inputs);
  const auto whole = whole_of(outputs);
  at::Tensor out = whole ? *whole : new_bytes(sum_of(out_sizes));
  const auto given = whole_of(inputs);
  at::Tensor in = given ? *given : at::cat(inputs);
  wait(gloo_->alltoall_base( // takes what the sizes hold
      out,
      in,
      out_sizes,
      in_sizes,
      with_timeout<c10d::AllToAllOptions>(timeout)));
  if (whole) {
    return;
  }
  int64_t first = 0;
  for (const at::Tensor& output : outputs) {
    output.copy_(out.narrow(0, first, output.numel()));
    first += output.numel();
  }
}

void GlooTransport::barrier(Milliseconds timeout) {
  wait(gloo_->barrier(with_timeout<c10d::BarrierOptions>(timeout)));
}

int GlooTransport::exchange(const std::vector<PeerOp>& ops) {
  std::vector<c10::intrusive_ptr<c10d::Work>> works;
  for (const PeerOp& op : ops) {
    Tensors buffers{op.tensor};
    works.push_back(
        op.kind == PeerOp::Kind::kSend ? gloo_->send(buffers, op.peer, op.tag)
            : op.kind == PeerOp::Kind::kRecv
            ? gloo_->recv(buffers, op.peer, op.tag)
            : gloo_->recvAnysource(buffers, op.tag));
  }
  int source = -1;
  for (size_t i = 0; i < ops.size(); ++i) {
    wait_for_peer(works[i]);
    if (ops[i].kind == PeerOp::Kind::kRecvAny) {
      source = works[i]->sourceRank();
    }
  }
  return source;
}

} // namespace openreg::distributed
