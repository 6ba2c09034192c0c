// SPDX-License-Identifier: BSD-3-Clause
// The form of messages and replies: what both sides have to know.
#pragma once

#include "codec/wire.h"
#include "results/output_metadata.h"

#include <ATen/core/dispatch/Dispatcher.h>

#include <cstdint>

namespace openreg::aten {

/// What a message asks for. One byte, the first.
enum class MessageTag : std::uint8_t {
  kGenerator, // asks for the state of a twin
  kCall,      // whose results have their places, or are to be described
  kPlace,     // of results that were described
  kDrop,      // of results that were described
  kLast = kDrop,
};

/// How a reply begins.
enum class ReplyTag : std::uint8_t {
  kGenerator, // its state
  kDone,
  kDescribed,   // results wait for their places
  kUndescribed, // what an operator made that changes nothing has no encoding
  kFailed,
  kLast = kFailed,
};

/// Which exception a failure is.
enum class FailureTag : std::uint8_t {
  kError, // RuntimeError
  kIndexError,
  kValueError,
  kTypeError,
  kNotImplementedError,
  kLinAlgError,
  kOutOfMemoryError,
  kBadAlloc, // of the host's memory
  kLast = kBadAlloc,
};

/// Metadata of results, as both sides write and read it.
void write_metadata(codec::Writer& out, const TensorMetadata& metadata);
TensorMetadata read_metadata(codec::Reader& in); // throws Malformed

/// Whether a message can ask for the kernel of an operator for a key of the
/// CPU's. It cannot unless there is one for this key, or one of ATen's for all
/// keys, or the device registers the operator: of others the host calls the
/// parts. It cannot either if the operator has nothing to do with tensors,
/// opens a file of the host, or takes or makes a tensor that is an object in
/// disguise, which its bytes are not.
bool is_the_devices(const c10::OperatorHandle& op, c10::DispatchKey key);

/// Whether an operator knows tensors of zeros without data: PyTorch gives
/// others zeros that are there, and their kernels would read from nowhere.
bool takes_zeros(const c10::OperatorHandle& op);

} // namespace openreg::aten
