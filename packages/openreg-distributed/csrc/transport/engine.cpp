// SPDX-License-Identifier: BSD-3-Clause
// Collectives that only move data work on bytes, so they support every dtype.
#include "transport/engine.h"

#include "transport/copy.h"
#include "transport/reduction.h"
#include "transport/shared/shared_transport.h"

#include <ATen/ATen.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <utility>

namespace openreg::distributed {
namespace {

/// The target of a result: the tensor's memory, or a temporary that store()
/// copies there.
class Target {
 public:
  explicit Target(const at::Tensor& tensor)
      : tensor_(tensor), bytes_(Bytes::of(tensor.contiguous())) {}

  const Bytes& bytes() const {
    return bytes_;
  }
  void store() const {
    if (!bytes_.owner.is_same(tensor_)) {
      tensor_.copy_(bytes_.owner);
    }
  }

 private:
  at::Tensor tensor_;
  Bytes bytes_;
};

BytesList bytes_of(const std::vector<Target>& targets) {
  BytesList all;
  for (const Target& target : targets) {
    all.push_back(target.bytes());
  }
  return all;
}

void store(const std::vector<Target>& targets) {
  for (const Target& target : targets) {
    target.store();
  }
}

/// Consecutive parts. `counts` are in units, of which `bytes` has `whole`.
BytesList parts_of(
    const Bytes& bytes,
    const std::vector<int64_t>& counts,
    int64_t whole) {
  BytesList parts;
  const size_t unit = whole == 0 ? 0 : bytes.size / static_cast<size_t>(whole);
  size_t first = 0;
  for (const int64_t count : counts) {
    parts.push_back(bytes.part(first, static_cast<size_t>(count) * unit));
    first += parts.back().size;
  }
  return parts;
}

/// The input of a collective, or a copy of it if an output overlaps the input.
/// The input may be identical to output number `same`.
Bytes apart(const Bytes& input, const BytesList& outputs, size_t same) {
  for (size_t i = 0; i < outputs.size(); ++i) {
    const Bytes& other = outputs[i];
    if (input.overlaps(other) && (i != same || input.data != other.data)) {
      const Bytes copy =
          Bytes::of(at::empty({static_cast<int64_t>(input.size)}, at::kByte));
      copy_bytes(copy.data, input.data, input.size);
      return copy;
    }
  }
  return input;
}

BytesList apart(const BytesList& inputs, const BytesList& outputs) {
  BytesList all;
  for (size_t i = 0; i < inputs.size(); ++i) {
    all.push_back(apart(inputs[i], outputs, i));
  }
  return all;
}

} // namespace

Engine::Engine(
    c10::intrusive_ptr<c10d::Backend> gloo,
    bool share_memory,
    Milliseconds timeout)
    : gloo_(std::move(gloo)),
      shared_(
          SharedTransport::connect(
              gloo_,
              gloo_.rank(),
              gloo_.size(),
              share_memory,
              timeout,
              token_)),
      transport_(shared_ ? shared_.get() : &gloo_) {}

bool Engine::fail(const std::string& why) {
  if (is_inherited()) {
    return false;
  }
  {
    const std::lock_guard lock(mutex_);
    if (!failure_.empty()) {
      return false;
    }
    failure_ = why;
  }
  transport_->fail(why);
  return true;
}

std::string Engine::failure() const {
  const std::lock_guard lock(mutex_);
  return failure_;
}

void Engine::abort() {
  if (is_inherited()) {
    return;
  }
  {
    const std::lock_guard lock(mutex_);
    if (failure_.empty()) {
      failure_ = "the group was aborted";
    }
  }
  transport_->abort();
}

void Engine::broadcast(const Operands& with) {
  const at::Tensor& tensor = with.outputs.front();
  if (tensor.numel() == 0) {
    return;
  }
  const Target target(tensor);
  transport_->broadcast(target.bytes(), with.root, with.timeout);
  if (rank() != with.root) {
    target.store();
  }
}

void Engine::allreduce(const Operands& with) {
  for (const at::Tensor& tensor : with.outputs) {
    if (tensor.numel() == 0) {
      continue;
    }
    const Reduction reduction(tensor, with.op, size(), true);
    transport_->allreduce(
        reduction.buffer(), reduction.buffer_op(), with.timeout);
    reduction.store(tensor, reduction.buffer());
  }
}

void Engine::reduce(const Operands& with) {
  const at::Tensor& tensor = with.outputs.front();
  if (tensor.numel() == 0) {
    return;
  }
  const bool is_root = rank() == with.root;
  const Reduction reduction(
      tensor, with.op, size(), is_root || transport_->keeps_inputs());
  transport_->reduce(
      reduction.buffer(), reduction.buffer_op(), with.root, with.timeout);
  if (is_root) {
    reduction.store(tensor, reduction.buffer());
  }
}

void Engine::allgather(const Operands& with) {
  const size_t count = with.inputs.size();
  for (size_t i = 0; i < count; ++i) {
    std::vector<Target> targets;
    for (size_t each = i; each < with.outputs.size(); each += count) {
      targets.emplace_back(with.outputs[each]);
    }
    const BytesList out = bytes_of(targets);
    if (total_of(out) == 0) {
      continue;
    }
    transport_->allgather(out, own_part(with.inputs[i], out), with.timeout);
    store(targets);
  }
}

void Engine::allgather_flat(const Operands& with) {
  for (size_t i = 0; i < with.inputs.size(); ++i) {
    if (with.outputs[i].numel() == 0) {
      continue;
    }
    const Target target(with.outputs[i]);
    const BytesList out =
        equal_parts(target.bytes(), static_cast<size_t>(size()));
    transport_->allgather(out, own_part(with.inputs[i], out), with.timeout);
    target.store();
  }
}

void Engine::reduce_scatter(const Operands& with) {
  Tensors flat;
  std::vector<int64_t> counts;
  for (const at::Tensor& input : with.inputs) {
    flat.push_back(input.reshape({-1}));
    counts.push_back(input.numel());
  }
  reduce_scatter(with.outputs.front(), at::cat(flat), counts, true, with);
}

void Engine::reduce_scatter_flat(const Operands& with) {
  for (size_t i = 0; i < with.inputs.size(); ++i) {
    const at::Tensor& output = with.outputs[i];
    const std::vector<int64_t> counts(
        static_cast<size_t>(size()), output.numel());
    reduce_scatter(
        output, with.inputs[i], counts, transport_->keeps_inputs(), with);
  }
}

void Engine::reduce_scatter(
    const at::Tensor& output,
    const at::Tensor& input,
    const std::vector<int64_t>& counts,
    bool in_place,
    const Operands& with) {
  if (input.numel() == 0) {
    return;
  }
  const Reduction reduction(input, with.op, size(), in_place);
  const at::Tensor result = reduction.result_for(output);
  transport_->reduce_scatter(
      result,
      reduction.buffer(),
      reduction.counts(counts),
      reduction.buffer_op(),
      with.timeout);
  reduction.store(output, result);
}

Bytes Engine::own_part(const at::Tensor& input, const BytesList& out) const {
  return apart(Bytes::of(input.contiguous()), out, static_cast<size_t>(rank()));
}

void Engine::gather(const Operands& with) {
  const at::Tensor& input = with.inputs.front();
  if (input.numel() == 0) {
    return;
  }
  const std::vector<Target> targets(with.outputs.begin(), with.outputs.end());
  const BytesList out = bytes_of(targets);
  transport_->gather(out, own_part(input, out), with.root, with.timeout);
  store(targets);
}

void Engine::scatter(const Operands& with) {
  const at::Tensor& output = with.outputs.front();
  if (output.numel() == 0) {
    return;
  }
  const Target target(output);
  BytesList in;
  for (const at::Tensor& input : with.inputs) {
    in.push_back(apart(Bytes::of(input.contiguous()), {target.bytes()}, 0));
  }
  transport_->scatter(target.bytes(), in, with.root, with.timeout);
  target.store();
}

void Engine::alltoall(const Operands& with) {
  const std::vector<Target> targets(with.outputs.begin(), with.outputs.end());
  const BytesList out = bytes_of(targets);
  BytesList in;
  for (const at::Tensor& input : with.inputs) {
    in.push_back(Bytes::of(input.contiguous()));
  }
  transport_->alltoall(out, apart(in, out), with.timeout);
  store(targets);
}

void Engine::alltoall_flat(const Operands& with) {
  const at::Tensor& output = with.outputs.front();
  const at::Tensor& input = with.inputs.front();
  const Target target(output);
  const BytesList out =
      parts_of(target.bytes(), with.output_splits, output.size(0));
  const BytesList in =
      parts_of(Bytes::of(input.contiguous()), with.input_splits, input.size(0));
  transport_->alltoall(out, apart(in, out), with.timeout);
  target.store();
}

void Engine::barrier(const Operands& with) {
  transport_->barrier(with.timeout);
}

Engine::SelfPairs Engine::pairs_with_self(
    const std::vector<PeerOp>& ops) const {
  std::vector<const PeerOp*> sends;
  std::vector<const PeerOp*> receives;
  for (const PeerOp& op : ops) {
    if (op.peer == rank()) {
      (op.kind == PeerOp::Kind::kSend ? sends : receives).push_back(&op);
    }
  }
  SelfPairs pairs;
  for (const PeerOp* receive : receives) {
    const auto found =
        std::find_if(sends.begin(), sends.end(), [&](const PeerOp* send) {
          return send->tag == receive->tag;
        });
    TORCH_CHECK(
        found != sends.end(),
        "occl: a receive from the same rank with tag ",
        receive->tag,
        " has no matching send in its batch");
    const at::Tensor& from = (*found)->tensor;
    const at::Tensor& to = receive->tensor;
    TORCH_CHECK(
        from.numel() == to.numel() && from.scalar_type() == to.scalar_type(),
        "occl: the rank sends itself ",
        from.numel(),
        " elements of ",
        from.scalar_type(),
        " with tag ",
        receive->tag,
        ", but receives ",
        to.numel(),
        " of ",
        to.scalar_type());
    pairs.emplace_back(*found, receive);
    sends.erase(found);
  }
  TORCH_CHECK(
      sends.empty(),
      "occl: a send to the same rank with tag ",
      sends.front()->tag,
      " has no matching receive in its batch");
  return pairs;
}

int Engine::exchange(const std::vector<PeerOp>& ops) {
  std::vector<Message> others;
  std::vector<Target> targets;
  for (const PeerOp& op : ops) {
    if (op.peer == rank()) {
      continue;
    }
    const Target target(op.tensor);
    others.push_back({op.kind, target.bytes(), op.peer, op.tag});
    if (op.kind == PeerOp::Kind::kSend) {
      continue;
    }
    targets.push_back(target);
  }
  for (const auto& [send, receive] : pairs_with_self(ops)) {
    receive->tensor.copy_(send->tensor.reshape(receive->tensor.sizes()));
  }
  const int source = transport_->exchange(others);
  store(targets);
  return source;
}

} // namespace openreg::distributed
