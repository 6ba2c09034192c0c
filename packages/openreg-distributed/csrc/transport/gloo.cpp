// SPDX-License-Identifier: BSD-3-Clause
// Waits for gloo's threads in a way that abort() can end.
#include "transport/gloo.h"

#include "transport/copy.h"

#include <ATen/ATen.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <functional>
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

at::Tensor new_bytes(size_t size) {
  return at::empty(
      {static_cast<int64_t>(size)}, at::TensorOptions().dtype(at::kByte));
}

/// `keep` keeps copies alive, because gloo's threads may use them after an
/// abort.
at::Tensor tensor_of(const Bytes& bytes, std::function<void(void*)> keep) {
  return at::from_blob(
      bytes.data,
      {static_cast<int64_t>(bytes.size)},
      std::move(keep),
      at::TensorOptions().dtype(at::kByte));
}

at::Tensor tensor_of(const Bytes& bytes) {
  return bytes.size == 0 ? new_bytes(0)
                         : tensor_of(bytes, [owner = bytes.owner](void*) {});
}

Tensors tensors_of(const BytesList& list) {
  Tensors tensors;
  for (const Bytes& bytes : list) {
    tensors.push_back(tensor_of(bytes));
  }
  return tensors;
}

std::vector<int64_t> sizes_of(const BytesList& list) {
  std::vector<int64_t> sizes;
  for (const Bytes& bytes : list) {
    sizes.push_back(static_cast<int64_t>(bytes.size));
  }
  return sizes;
}

/// Returns consecutive memory as one tensor, without a copy.
std::optional<at::Tensor> whole_of(const BytesList& list) {
  Bytes whole;
  for (const Bytes& bytes : list) {
    if (bytes.size == 0) {
      continue;
    }
    if (whole.size == 0) {
      whole.data = bytes.data;
    } else if (bytes.data != whole.data + whole.size) {
      return std::nullopt;
    }
    whole.size += bytes.size;
  }
  if (whole.size == 0) {
    return std::nullopt;
  }
  return tensor_of(whole, [list](void*) {});
}

} // namespace

// The running operations of gloo.
struct GlooTransport::Progress {
  std::mutex mutex;
  std::condition_variable condition;
  bool aborted = false;
  size_t running = 0;          // running collectives
  std::set<c10d::Work*> peers; // awaited sends and receives

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
    // gloo would wait for threads that do not exist in this process.
    static_cast<void>(gloo_.release());
    return;
  }
  const std::lock_guard lock(progress_->mutex);
  if (progress_->running != 0) {
    // gloo ends its threads with the last reference. One of them may wait for
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
  work->wait(); // throws its failure
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

bool GlooTransport::threads_run() const {
  const std::lock_guard lock(progress_->mutex);
  return progress_->running != 0;
}

void GlooTransport::broadcast(
    const Bytes& bytes,
    int root,
    Milliseconds timeout) {
  auto options = with_timeout<c10d::BroadcastOptions>(timeout);
  options.rootRank = root;
  Tensors buffers{tensor_of(bytes)};
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
    const BytesList& outputs,
    const Bytes& input,
    Milliseconds timeout) {
  const auto options = with_timeout<c10d::AllgatherOptions>(timeout);
  const std::vector<int64_t> sizes = sizes_of(outputs);
  const auto [least, most] = std::minmax_element(sizes.begin(), sizes.end());
  if (*least == *most) {
    std::vector<Tensors> out{tensors_of(outputs)};
    Tensors in{tensor_of(input)};
    wait(gloo_->allgather(out, in, options));
    return;
  }
  // gloo needs equal sizes on all ranks.
  const auto largest = static_cast<size_t>(*most);
  const Bytes all = Bytes::of(new_bytes(largest * outputs.size()));
  const Bytes own = Bytes::of(new_bytes(largest));
  copy_bytes(own.data, input.data, input.size);
  const BytesList parts = equal_parts(all, outputs.size());
  std::vector<Tensors> out{tensors_of(parts)};
  Tensors in{tensor_of(own)};
  wait(gloo_->allgather(out, in, options));
  for (size_t i = 0; i < outputs.size(); ++i) {
    copy_bytes(outputs[i].data, parts[i].data, outputs[i].size);
  }
}

void GlooTransport::gather(
    const BytesList& outputs,
    const Bytes& input,
    int root,
    Milliseconds timeout) {
  auto options = with_timeout<c10d::GatherOptions>(timeout);
  options.rootRank = root;
  std::vector<Tensors> out;
  if (rank() == root) {
    out.push_back(tensors_of(outputs));
  }
  Tensors in{tensor_of(input)};
  wait(gloo_->gather(out, in, options));
}

void GlooTransport::scatter(
    const Bytes& output,
    const BytesList& inputs,
    int root,
    Milliseconds timeout) {
  auto options = with_timeout<c10d::ScatterOptions>(timeout);
  options.rootRank = root;
  std::vector<Tensors> in;
  if (rank() == root) {
    in.push_back(tensors_of(inputs));
  }
  Tensors out{tensor_of(output)};
  wait(gloo_->scatter(out, in, options));
}

void GlooTransport::alltoall(
    const BytesList& outputs,
    const BytesList& inputs,
    Milliseconds timeout) {
  std::vector<int64_t> out_sizes = sizes_of(outputs);
  std::vector<int64_t> in_sizes = sizes_of(inputs);
  const auto whole = whole_of(outputs);
  const auto given = whole_of(inputs);
  at::Tensor out = whole ? *whole : new_bytes(total_of(outputs));
  at::Tensor in = given ? *given : at::cat(tensors_of(inputs));
  if (Bytes::of(in).overlaps(Bytes::of(out))) {
    in = in.clone(); // gloo writes parts before it has read all
  }
  wait(gloo_->alltoall_base( // takes the sizes' data
      out,
      in,
      out_sizes,
      in_sizes,
      with_timeout<c10d::AllToAllOptions>(timeout)));
  if (whole) {
    return;
  }
  const auto* next = static_cast<const std::byte*>(out.const_data_ptr());
  for (const Bytes& output : outputs) {
    copy_bytes(output.data, next, output.size);
    next += output.size;
  }
}

void GlooTransport::barrier(Milliseconds timeout) {
  wait(gloo_->barrier(with_timeout<c10d::BarrierOptions>(timeout)));
}

int GlooTransport::exchange(const std::vector<Message>& messages) {
  // They own gloo's buffers, whose destruction waits until gloo's threads no
  // longer use the memory. They are destroyed here, also after an error.
  std::vector<c10::intrusive_ptr<c10d::Work>> works;
  for (const Message& each : messages) {
    Tensors buffers{tensor_of(each.bytes)};
    works.push_back(
        each.kind == PeerOp::Kind::kSend
            ? gloo_->send(buffers, each.peer, each.tag)
            : each.kind == PeerOp::Kind::kRecv
            ? gloo_->recv(buffers, each.peer, each.tag)
            : gloo_->recvAnysource(buffers, each.tag));
  }
  int source = -1;
  for (size_t i = 0; i < messages.size(); ++i) {
    wait_for_peer(works[i]);
    if (messages[i].kind == PeerOp::Kind::kRecvAny) {
      source = works[i]->sourceRank();
    }
  }
  return source;
}

} // namespace openreg::distributed
