// SPDX-License-Identifier: BSD-3-Clause
// The format of messages and replies, which both sides share.
#pragma once

#include "codec/wire.h"
#include "results/output_metadata.h"

#include <ATen/core/dispatch/Dispatcher.h>

#include <cstdint>

namespace openreg::aten {

/// The kind of a message, which is its first byte.
enum class MessageTag : std::uint8_t {
  kGenerator, // requests the state of a twin
  kCall,      // the results are predicted, or the reply describes them
  kPlace,     // assigns memory to described results
  kDrop,      // drops described results
  kLast = kDrop,
};

/// The kind of a reply.
enum class ReplyTag : std::uint8_t {
  kGenerator, // the state
  kDone,
  kDescribed, // the results wait for memory
  // A result cannot be encoded, and the operator changes no argument.
  kUndescribed,
  kFailed,
  kLast = kFailed,
};

/// The exception type of a failure.
enum class FailureTag : std::uint8_t {
  kError, // RuntimeError
  kIndexError,
  kValueError,
  kTypeError,
  kNotImplementedError,
  kLinAlgError,
  kOutOfMemoryError,
  kBadAlloc, // of host memory
  kLast = kBadAlloc,
};

/// Write and read the metadata of results.
void write_metadata(codec::Writer& out, const TensorMetadata& metadata);
TensorMetadata read_metadata(codec::Reader& in); // throws Malformed

/// Whether a message can request the kernel of an operator for a CPU dispatch
/// key. The operator must have a kernel for this key, an ATen kernel for all
/// keys, or a kernel registered by the device. For other operators the host
/// calls the operators they are composed of. Operators without tensors,
/// operators that open host files, and operators with tensors that are objects
/// in disguise cannot be sent.
bool has_device_kernel(const c10::OperatorHandle& op, c10::DispatchKey key);

/// Whether an operator accepts tensors of zeros without data. PyTorch allocates
/// the zeros for all other operators, whose kernels would read invalid memory.
bool accepts_zero_tensor(const c10::OperatorHandle& op);

} // namespace openreg::aten
