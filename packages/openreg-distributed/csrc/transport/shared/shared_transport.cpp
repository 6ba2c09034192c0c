// SPDX-License-Identifier: BSD-3-Clause
// The steps of each collective. Large tensors pass through the slots in pieces
// that stay in the caches.
#include "transport/shared/shared_transport.h"

#include "transport/combine.h"
#include "transport/copy.h"

#include <ATen/ATen.h>
#include <c10/util/Exception.h>
#include <torch/csrc/distributed/c10d/Work.hpp>

#include <algorithm>
#include <utility>

namespace openreg::distributed {
namespace {

using c10d::OpType;
using c10d::ReduceOp;

// Up to this size every rank computes the whole reduction, which needs only one
// step. All ranks reduce in the same order, so their results are bitwise equal.
constexpr size_t kReducedByAll = size_t{64} << 10;

std::byte* data_of(const at::Tensor& tensor) {
  return static_cast<std::byte*>(tensor.data_ptr());
}

size_t size_of(const at::Tensor& tensor) {
  return tensor.nbytes();
}

size_t pieces_of(size_t bytes, size_t piece) {
  return (bytes + piece - 1) / piece;
}

/// The length of the part of at most `size` bytes that begins at `first`.
size_t clipped(size_t bytes, size_t first, size_t size) {
  return first >= bytes ? 0 : std::min(size, bytes - first);
}

const char* name_of(ReduceOp::RedOpType operation) {
  switch (operation) {
    case ReduceOp::SUM:
      return "sum";
    case ReduceOp::PRODUCT:
      return "product";
    case ReduceOp::MIN:
      return "min";
    case ReduceOp::MAX:
      return "max";
    case ReduceOp::BAND:
      return "bitwise and";
    case ReduceOp::BOR:
      return "bitwise or";
    case ReduceOp::BXOR:
      return "bitwise xor";
    default:
      return "another function";
  }
}

/// As in `REDUCE of 16 bytes, the sum of Float, with root 0`.
std::string text_of(const Call& call) {
  std::string text = c10::str(
      c10d::opTypeToString(static_cast<OpType>(call.kind)),
      " of ",
      call.bytes,
      " bytes");
  const auto operation = static_cast<ReduceOp::RedOpType>(call.operation);
  if (operation != ReduceOp::UNUSED) {
    text += c10::str(
        ", the ",
        name_of(operation),
        " of ",
        static_cast<c10::ScalarType>(call.type));
  }
  if (call.root >= 0) {
    text += c10::str(", with root ", call.root);
  }
  return text;
}

/// A rank's share of a slot, in whole elements of every type.
size_t share_of_slot(int ranks) {
  return Segment::kSlotBytes / static_cast<size_t>(ranks) / 64 * 64;
}

} // namespace

class SharedTransport::Steps {
 public:
  Steps(SharedTransport& transport, const Call& call, Milliseconds timeout)
      : transport_(transport),
        peers_(transport.peers_),
        call_(call),
        deadline_(
            timeout == c10d::kUnsetTimeout ? transport.timeout_.load()
                                           : timeout),
        first_(transport.next_step_ - (transport.is_given_ ? 1 : 0)) {}

  /// Throws NotYet in an attempt unless the call needs only one step. Must be
  /// called before the call writes to its operands.
  void check_attempt(bool is_one_step) {
    if (!is_one_step && Attempt::runs_here()) {
      leave_attempt();
    }
  }

  /// Begins the next step: `write` fills this rank's free slot, and the other
  /// ranks are notified.
  template <typename Write>
  void give(const Write& write) {
    if (std::exchange(transport_.is_given_, false)) {
      return;
    }
    const uint64_t step = transport_.next_step_;
    wait([&](int other) { return posted(other).load(kAcquire) < step; });
    if (step > 0) {
      // Some ranks may not have waited for any other.
      compare(step - 1, [](int) { return true; });
    }
    write(peers_.segment().slot(peers_.rank(), step));
    RankState& state = peers_.segment().state(peers_.rank());
    state.calls[step % 2] = call_;
    ++transport_.next_step_;
    state.posted.store(step + 1, std::memory_order_release);
    peers_.ring_others();
  }
  void wait_for_all() {
    wait_until_posted([](int) { return true; });
  }
  void wait_for(int rank) {
    wait_until_posted([rank](int other) { return other == rank; });
  }
  /// The slot of an awaited rank.
  const std::byte* slot(int rank) const {
    return peers_.segment().slot(rank, transport_.next_step_ - 1);
  }
  /// The place of this rank's reduced result, which is read in the next step.
  /// It may be written once all ranks were awaited.
  std::byte* own_result() const {
    return peers_.segment().slot(peers_.rank(), transport_.next_step_) +
        Segment::kSlotBytes;
  }
  const std::byte* result(int rank) const {
    return slot(rank) + Segment::kSlotBytes;
  }

 private:
  static constexpr auto kAcquire = std::memory_order_acquire;

  std::atomic<uint64_t>& posted(int rank) const {
    return peers_.segment().state(rank).posted;
  }

  template <typename Missing>
  void wait(const Missing& missing) {
    if (!Attempt::runs_here()) {
      peers_.wait(missing, deadline_);
      return;
    }
    if (!transport_.patience_.spin([&] { return peers_.has_all(missing); })) {
      leave_attempt();
    }
  }

  /// The same call continues later, on another thread.
  [[noreturn]] void leave_attempt() {
    transport_.is_given_ = transport_.next_step_ > first_;
    throw NotYet{};
  }

  template <typename Needed>
  void wait_until_posted(const Needed& needed) {
    const uint64_t step = transport_.next_step_;
    wait([&](int other) {
      return needed(other) && posted(other).load(kAcquire) < step;
    });
    if (step == first_ + 1) {
      compare(step - 1, needed);
    }
  }

  /// Throws if ranks have posted a step for different calls.
  template <typename Needed>
  void compare(uint64_t step, const Needed& needed) const {
    const auto call_of = [&](int rank) -> const Call& {
      return peers_.segment().state(rank).calls[step % 2];
    };
    for (int other = 0; other < peers_.size(); ++other) {
      if (needed(other) && call_of(other) != call_of(peers_.rank())) {
        fail_different(other, call_of(other), call_of(peers_.rank()));
      }
    }
  }

  [[noreturn]] void fail_different(int rank, const Call& other, const Call& own)
      const {
    C10_THROW_ERROR(
        DistBackendError,
        c10::str(
            "the ranks call different collectives: rank ",
            rank,
            " ",
            text_of(other),
            ", and rank ",
            peers_.rank(),
            " ",
            text_of(own)));
  }

  SharedTransport& transport_;
  Peers& peers_;
  Call call_;
  Deadline deadline_;
  uint64_t first_;
};

namespace {

Call call_of(OpType kind, size_t bytes, int root = -1) {
  return {static_cast<uint8_t>(kind), ReduceOp::UNUSED, int8_t{0}, root, bytes};
}

Call call_of(
    OpType kind,
    const at::Tensor& reduced,
    const ReduceOp& op,
    int root = -1) {
  Call call = call_of(kind, size_of(reduced), root);
  call.operation = static_cast<ReduceOp::RedOpType>(op);
  call.type = static_cast<int8_t>(reduced.scalar_type());
  return call;
}

} // namespace

SharedTransport::SharedTransport(
    std::unique_ptr<Segment> segment,
    int rank,
    std::vector<std::shared_ptr<const Process>> processes,
    Milliseconds timeout)
    : peers_(std::move(segment), rank, std::move(processes)),
      patience_(Patience::of_attempts(peers_.size())),
      mailbox_(peers_),
      timeout_(timeout) {}

void SharedTransport::fail(const std::string& why) {
  peers_.leave(Membership::kFailed, why);
}

void SharedTransport::abort() {
  peers_.leave(Membership::kLeft);
}

void SharedTransport::broadcast(
    const Bytes& bytes,
    int root,
    Milliseconds timeout) {
  const size_t size = bytes.size;
  Steps steps(*this, call_of(OpType::BROADCAST, size, root), timeout);
  for (size_t first = 0; first < size; first += Segment::kSlotBytes) {
    const size_t count = clipped(size, first, Segment::kSlotBytes);
    steps.give([&](std::byte* slot) {
      if (rank() == root) {
        copy_bytes(slot, bytes.data + first, count);
      }
    });
    if (rank() != root) {
      steps.wait_for(root);
      store_bytes(bytes.data + first, steps.slot(root), count, size);
    }
  }
}

void SharedTransport::allreduce(
    const at::Tensor& buffer,
    const c10d::ReduceOp& op,
    Milliseconds timeout) {
  const size_t size = size_of(buffer);
  std::byte* data = data_of(buffer);
  const auto type = buffer.scalar_type();
  Steps steps(*this, call_of(OpType::ALLREDUCE, buffer, op), timeout);
  const auto ranks = static_cast<size_t>(this->size());
  std::vector<const std::byte*> given(ranks);
  if (size * ranks <= kReducedByAll) {
    steps.give([&](std::byte* slot) { copy_bytes(slot, data, size); });
    steps.wait_for_all();
    for (size_t i = 0; i < ranks; ++i) {
      given[i] = steps.slot(static_cast<int>(i));
    }
    combine(data, given, size, type, op);
    return;
  }
  steps.check_attempt(false);
  // Each rank reduces its share of a piece, which the others read in the next
  // step.
  const auto own = static_cast<size_t>(rank());
  const size_t share = share_of_slot(this->size());
  const size_t piece = share * ranks;
  const size_t pieces = pieces_of(size, piece);
  const auto each_other = [&](size_t i, const auto& function) {
    for (size_t other = 0; other < ranks; ++other) {
      const size_t first = i * piece + other * share;
      if (other != own) {
        function(other, data + first, clipped(size, first, share));
      }
    }
  };
  for (size_t i = 0; i <= pieces; ++i) {
    steps.give([&](std::byte* slot) {
      if (i < pieces) {
        each_other(i, [&](size_t other, std::byte* part, size_t count) {
          copy_bytes(slot + other * share, part, count);
        });
      }
    });
    steps.wait_for_all();
    const size_t first = i * piece + own * share;
    if (const size_t count = clipped(size, first, share); count > 0) {
      for (size_t other = 0; other < ranks; ++other) {
        given[other] = other == own
            ? data + first
            : steps.slot(static_cast<int>(other)) + own * share;
      }
      combine(steps.own_result(), given, count, type, op);
      copy_bytes(data + first, steps.own_result(), count);
    }
    if (i > 0) {
      each_other(i - 1, [&](size_t other, std::byte* part, size_t count) {
        copy_bytes(part, steps.result(static_cast<int>(other)), count);
      });
    }
  }
}

void SharedTransport::reduce(
    const at::Tensor& buffer,
    const c10d::ReduceOp& op,
    int root,
    Milliseconds timeout) {
  const size_t size = size_of(buffer);
  std::byte* data = data_of(buffer);
  Steps steps(*this, call_of(OpType::REDUCE, buffer, op, root), timeout);
  std::vector<const std::byte*> given(static_cast<size_t>(this->size()));
  for (size_t first = 0; first < size; first += Segment::kSlotBytes) {
    const size_t count = clipped(size, first, Segment::kSlotBytes);
    steps.give([&](std::byte* slot) { copy_bytes(slot, data + first, count); });
    if (rank() == root) {
      steps.wait_for_all();
      for (size_t i = 0; i < given.size(); ++i) {
        given[i] = steps.slot(static_cast<int>(i));
      }
      combine(data + first, given, count, buffer.scalar_type(), op);
    }
  }
}

void SharedTransport::reduce_scatter(
    const at::Tensor& result,
    const at::Tensor& buffer,
    const std::vector<int64_t>& counts,
    const c10d::ReduceOp& op,
    Milliseconds timeout) {
  const auto width = static_cast<size_t>(buffer.element_size());
  const size_t share = share_of_slot(size());
  const auto own = static_cast<size_t>(rank());
  std::vector<size_t> begins;
  size_t size = 0;
  size_t largest = 0;
  for (const int64_t count : counts) {
    begins.push_back(size);
    size += static_cast<size_t>(count) * width;
    largest = std::max(largest, static_cast<size_t>(count) * width);
  }
  const std::byte* data = data_of(buffer);
  Steps steps(*this, call_of(OpType::REDUCE_SCATTER, buffer, op), timeout);
  steps.check_attempt(largest <= share);
  std::vector<const std::byte*> given(counts.size());
  for (size_t first = 0; first < largest; first += share) {
    steps.give([&](std::byte* slot) {
      for (size_t other = 0; other < counts.size(); ++other) {
        const size_t given_size = static_cast<size_t>(counts[other]) * width;
        if (other != own) {
          copy_bytes(
              slot + other * share,
              data + begins[other] + first,
              clipped(given_size, first, share));
        }
      }
    });
    steps.wait_for_all();
    const size_t count = clipped(size_of(result), first, share);
    for (size_t other = 0; other < counts.size(); ++other) {
      given[other] = other == own
          ? data + begins[own] + first
          : steps.slot(static_cast<int>(other)) + own * share;
    }
    // The result may alias this rank's part of the input.
    combine(steps.own_result(), given, count, buffer.scalar_type(), op);
    store_bytes(
        data_of(result) + first, steps.own_result(), count, size_of(result));
  }
}

void SharedTransport::allgather(
    const BytesList& outputs,
    const Bytes& input,
    Milliseconds timeout) {
  size_t largest = 0;
  for (const Bytes& output : outputs) {
    largest = std::max(largest, output.size);
  }
  const size_t all = total_of(outputs);
  Steps steps(*this, call_of(OpType::ALLGATHER, all), timeout);
  for (size_t first = 0; first < largest; first += Segment::kSlotBytes) {
    steps.give([&](std::byte* slot) {
      copy_bytes(
          slot,
          input.data + first,
          clipped(input.size, first, Segment::kSlotBytes));
    });
    steps.wait_for_all();
    for (int other = 0; other < size(); ++other) {
      const Bytes& output = outputs[static_cast<size_t>(other)];
      store_bytes(
          output.data + first,
          other == rank() ? input.data + first : steps.slot(other),
          clipped(output.size, first, Segment::kSlotBytes),
          all);
    }
  }
}

void SharedTransport::gather(
    const BytesList& outputs,
    const Bytes& input,
    int root,
    Milliseconds timeout) {
  const size_t size = input.size;
  Steps steps(*this, call_of(OpType::GATHER, size, root), timeout);
  for (size_t first = 0; first < size; first += Segment::kSlotBytes) {
    const size_t count = clipped(size, first, Segment::kSlotBytes);
    steps.give(
        [&](std::byte* slot) { copy_bytes(slot, input.data + first, count); });
    if (rank() == root) {
      steps.wait_for_all();
      for (int other = 0; other < this->size(); ++other) {
        store_bytes(
            outputs[static_cast<size_t>(other)].data + first,
            steps.slot(other),
            count,
            size * outputs.size());
      }
    }
  }
}

void SharedTransport::scatter(
    const Bytes& output,
    const BytesList& inputs,
    int root,
    Milliseconds timeout) {
  const size_t size = output.size;
  const size_t share = share_of_slot(this->size());
  Steps steps(*this, call_of(OpType::SCATTER, size, root), timeout);
  steps.check_attempt(size <= share);
  for (size_t first = 0; first < size; first += share) {
    const size_t count = clipped(size, first, share);
    steps.give([&](std::byte* slot) {
      for (size_t other = 0; other < inputs.size(); ++other) {
        copy_bytes(slot + other * share, inputs[other].data + first, count);
      }
    });
    steps.wait_for(root);
    store_bytes(
        output.data + first,
        steps.slot(root) + static_cast<size_t>(rank()) * share,
        count,
        size);
  }
}

void SharedTransport::alltoall(
    const BytesList& outputs,
    const BytesList& inputs,
    Milliseconds timeout) {
  const auto ranks = static_cast<size_t>(size());
  const auto own = static_cast<size_t>(rank());
  const size_t share = share_of_slot(size());
  // Ranks do not know the sizes between other ranks. The slot of the first step
  // contains the sizes and the first pieces.
  const auto sizes_in = [](const std::byte* slot) {
    return reinterpret_cast<const uint64_t*>(slot + Segment::kSlotBytes);
  };
  const size_t all = total_of(outputs);
  Steps steps(*this, call_of(OpType::ALLTOALL, 0), timeout);
  size_t largest = 1;
  for (size_t first = 0; first < largest; first += share) {
    steps.give([&](std::byte* slot) {
      for (size_t other = 0; other < ranks; ++other) {
        const size_t size = inputs[other].size;
        if (other != own) {
          copy_bytes(
              slot + other * share,
              inputs[other].data + first,
              clipped(size, first, share));
        }
        const_cast<uint64_t*>(sizes_in(slot))[other] = size;
      }
    });
    steps.wait_for_all();
    for (size_t other = 0; other < ranks; ++other) {
      const uint64_t* sizes = sizes_in(steps.slot(static_cast<int>(other)));
      largest =
          std::max<size_t>(largest, *std::max_element(sizes, sizes + ranks));
    }
    steps.check_attempt(largest <= share);
    for (size_t other = 0; other < ranks; ++other) {
      const std::byte* given = steps.slot(static_cast<int>(other));
      const uint64_t* sizes = sizes_in(given);
      const size_t size = outputs[other].size;
      if (sizes[own] != size) {
        C10_THROW_ERROR(
            DistBackendError,
            c10::str(
                "rank ",
                other,
                " gives ",
                sizes[own],
                " bytes, but rank ",
                own,
                " takes ",
                size));
      }
      store_bytes(
          outputs[other].data + first,
          other == own ? inputs[own].data + first : given + own * share,
          clipped(size, first, share),
          all);
    }
  }
}

void SharedTransport::barrier(Milliseconds timeout) {
  Steps steps(*this, call_of(OpType::BARRIER, 0), timeout);
  steps.give([](std::byte*) {});
  steps.wait_for_all();
}

int SharedTransport::exchange(const std::vector<Message>& messages) {
  return mailbox_.exchange(messages, Deadline(timeout_.load()));
}

} // namespace openreg::distributed
