// SPDX-License-Identifier: BSD-3-Clause
// How bytes get from rank to rank. All of it blocks, and every rank calls the
// same in the same order, but for exchange().
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

/// A send or receive of a batch.
struct PeerOp {
  enum class Kind { kSend, kRecv, kRecvAny };
  Kind kind;
  at::Tensor tensor;
  int peer;
  int tag;
};

/// Memory of the host, which is that of `owner`: a copy, which it keeps, or a
/// device's, which it does not.
struct Bytes {
  std::byte* data = nullptr;
  size_t size = 0;
  at::Tensor owner;

  /// Those of a contiguous tensor.
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
/// Parts of one size that follow each other.
BytesList equal_parts(const Bytes& bytes, size_t parts);

/// A PeerOp, of bytes.
struct Message {
  PeerOp::Kind kind;
  Bytes bytes;
  int peer;
  int tag;
};

/// The bytes of a call that can be attempted.
constexpr size_t kMostAttempted = size_t{64} << 10;

/// Thrown by what an Attempt cannot do at once. It can be called again with the
/// same arguments, and then goes on where it has stopped.
struct NotYet {};

/// While it lives, what its thread asks of a transport waits for other ranks
/// only for moments.
class Attempt {
 public:
  Attempt();
  ~Attempt();
  Attempt(const Attempt&) = delete;
  Attempt& operator=(const Attempt&) = delete;

  static bool runs_here();
};

/// Tensors, which are reduced, are contiguous vectors of host memory, of a type
/// of gloo.
class Transport {
 public:
  Transport() = default;
  Transport(const Transport&) = delete;
  Transport& operator=(const Transport&) = delete;
  virtual ~Transport() = default;

  /// True if reduce() and reduce_scatter() leave what they are given as it is.
  virtual bool keeps_inputs() const = 0;
  /// True if one collective, or an exchange of one message that is not from any
  /// rank, can be attempted while no other runs.
  virtual bool can_attempt() const = 0;
  /// The limit of exchange() from now on.
  virtual void set_timeout(Milliseconds timeout) = 0;
  /// Ends what waits, with an error, and all that comes.
  virtual void abort() = 0;
  /// The same after a failure, if the other ranks can be told of it.
  virtual void fail(const std::string& why) = 0;

  virtual void
  broadcast(const Bytes& bytes, int root, Milliseconds timeout) = 0;
  virtual void allreduce(
      const at::Tensor& buffer,
      const c10d::ReduceOp& op,
      Milliseconds timeout) = 0;
  /// The result is in the root's buffer.
  virtual void reduce(
      const at::Tensor& buffer,
      const c10d::ReduceOp& op,
      int root,
      Milliseconds timeout) = 0;
  /// `buffer` has as many elements for each rank as `counts` says.
  virtual void reduce_scatter(
      const at::Tensor& result,
      const at::Tensor& buffer,
      const std::vector<int64_t>& counts,
      const c10d::ReduceOp& op,
      Milliseconds timeout) = 0;
  /// Outputs may differ in size: each as large as the input of its rank.
  virtual void allgather(
      const BytesList& outputs,
      const Bytes& input,
      Milliseconds timeout) = 0;
  /// `outputs` is empty but on the root.
  virtual void gather(
      const BytesList& outputs,
      const Bytes& input,
      int root,
      Milliseconds timeout) = 0;
  /// `inputs` is empty but on the root.
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
  /// Begins all of them, none with the rank itself, and waits for all. Returns
  /// the rank that the last receive from any rank got its data of, or -1.
  virtual int exchange(const std::vector<Message>& messages) = 0;
};

} // namespace openreg::distributed
