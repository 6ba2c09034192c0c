// SPDX-License-Identifier: BSD-3-Clause
// Moves bytes between ranks. All functions block. Except for exchange(), every
// rank makes the same calls in the same order.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/csrc/distributed/c10d/Types.hpp>

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

namespace openreg::distributed {

constexpr const char* kBackendName = "occl";

using Tensors = std::vector<at::Tensor>;
using Milliseconds = std::chrono::milliseconds;

/// A send or receive in a batch.
struct PeerOp {
  enum class Kind { kSend, kRecv, kRecvAny };
  Kind kind;
  at::Tensor tensor;
  int peer;
  int tag;
};

/// Host memory of `owner`: a copy, which it keeps alive, or device memory,
/// which it does not.
struct Bytes {
  std::byte* data = nullptr;
  size_t size = 0;
  at::Tensor owner;

  /// The bytes of a contiguous tensor.
  static Bytes of(const at::Tensor& tensor) {
    return {
        static_cast<std::byte*>(tensor.data_ptr()), tensor.nbytes(), tensor};
  }
  Bytes part(size_t first, size_t count) const {
    return {data + first, count, owner};
  }
  bool overlaps(const Bytes& other) const {
    return data < other.data + other.size && other.data < data + size;
  }
};
using BytesList = std::vector<Bytes>;
size_t total_of(const BytesList& list);
/// Consecutive parts of equal size.
BytesList equal_parts(const Bytes& bytes, size_t parts);

/// A PeerOp on bytes.
struct Message {
  PeerOp::Kind kind;
  Bytes bytes;
  int peer;
  int tag;
};

/// The most bytes of a call that can be attempted.
constexpr size_t kMostAttempted = size_t{64} << 10;

/// Thrown when an Attempt cannot finish immediately. The same call can be
/// repeated with the same arguments and then continues.
struct NotYet {};

/// During its lifetime the thread's transport calls wait only briefly for other
/// ranks.
class Attempt {
 public:
  Attempt();
  ~Attempt();
  Attempt(const Attempt&) = delete;
  Attempt& operator=(const Attempt&) = delete;

  static bool runs_here();
};

/// Reduced tensors are contiguous host memory vectors of a dtype that gloo
/// supports.
class Transport {
 public:
  Transport() = default;
  Transport(const Transport&) = delete;
  Transport& operator=(const Transport&) = delete;
  virtual ~Transport() = default;

  /// True if reduce() and reduce_scatter() do not modify their inputs.
  virtual bool keeps_inputs() const = 0;
  /// True if a collective, or an exchange of one message with a known peer, can
  /// be attempted while no other call runs.
  virtual bool can_attempt() const = 0;
  /// Sets the limit of exchange().
  virtual void set_timeout(Milliseconds timeout) = 0;
  /// Ends waiting and later calls with an error.
  virtual void abort() = 0;
  /// Like abort() after a failure, and notifies the other ranks if possible.
  virtual void fail(const std::string& why) = 0;

  virtual void
  broadcast(const Bytes& bytes, int root, Milliseconds timeout) = 0;
  virtual void allreduce(
      const at::Tensor& buffer,
      const c10d::ReduceOp& op,
      Milliseconds timeout) = 0;
  /// The result is stored in the root's buffer.
  virtual void reduce(
      const at::Tensor& buffer,
      const c10d::ReduceOp& op,
      int root,
      Milliseconds timeout) = 0;
  /// `buffer` has `counts[i]` elements for rank i.
  virtual void reduce_scatter(
      const at::Tensor& result,
      const at::Tensor& buffer,
      const std::vector<int64_t>& counts,
      const c10d::ReduceOp& op,
      Milliseconds timeout) = 0;
  /// Each output is as large as the input of its rank; sizes may differ.
  virtual void allgather(
      const BytesList& outputs,
      const Bytes& input,
      Milliseconds timeout) = 0;
  /// `outputs` is empty except on the root.
  virtual void gather(
      const BytesList& outputs,
      const Bytes& input,
      int root,
      Milliseconds timeout) = 0;
  /// `inputs` is empty except on the root.
  virtual void scatter(
      const Bytes& output,
      const BytesList& inputs,
      int root,
      Milliseconds timeout) = 0;
  virtual void alltoall(
      const BytesList& outputs,
      const BytesList& inputs,
      Milliseconds timeout) = 0;
  virtual void barrier(Milliseconds timeout) = 0;
  /// Begins all messages, none with the rank itself, and waits for all. Returns
  /// the source rank of the last receive from any rank, or -1.
  virtual int exchange(const std::vector<Message>& messages) = 0;
};

} // namespace openreg::distributed
