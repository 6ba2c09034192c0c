// SPDX-License-Identifier: BSD-3-Clause
// The host side of messages: sends calls and reads the replies.
#pragma once

#include "base/export.h"
#include "codec/values.h"
#include "codec/wire.h"
#include "message/protocol.h"
#include "results/kernel_run.h"

#include <openreg/activity.h>

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include <cstdint>
#include <optional>
#include <vector>

namespace openreg::aten {

/// Whether calls are sent as messages: OPENREG_ISOLATION is not thread.
bool sends_messages();

/// Sends a message in the order of the current stream of the current device,
/// and waits for the reply. `info` describes the work for activity records.
void exchange(
    const orLaunchInfo& info,
    codec::ByteSpan message,
    codec::Bytes& reply);

/// Sends a message, which may be invalid, to the executor of this or of a
/// device process.
OPENREG_ATEN_API void call_executor(
    codec::ByteSpan message,
    codec::Bytes& reply);

/// Assigns a generator the state of its twin on `device`, if it has one.
OPENREG_ATEN_API void fetch_generator(
    const at::Generator& generator,
    c10::DeviceIndex device);

/// Writes a call with CPU aliases as arguments. With `results`, the kernel
/// writes new tensors there. Otherwise the reply describes them. Returns false
/// if an argument cannot be encoded. `objects` receives the tensors and
/// storages of the arguments.
bool write_call(
    codec::Bytes& message,
    const c10::OperatorHandle& op,
    c10::DispatchKey key,
    c10::DeviceIndex device,
    const torch::jit::Stack& stack,
    const ResultPlaces* results,
    codec::NumberedObjects& objects);

/// Reads the reply to a call whose `count` results were predicted. `report`
/// receives the actual metadata if the prediction was wrong. Throws the
/// exception of the kernel.
void read_done(
    codec::ByteSpan reply,
    std::size_t count,
    c10::function_ref<void(std::vector<TensorMetadata>)> report);

/// Reads a reply that describes the results. Copies changes to the aliases
/// among the arguments, creates the new tensors with the CPU allocator, and
/// makes the device fill them. Returns the results, or null if one cannot be
/// encoded. Throws the exception of the kernel. Throws Malformed for a reply
/// that does not match the operator, before any device tensor has changed.
std::optional<torch::jit::Stack> read_described(
    const codec::Bytes& reply,
    const c10::OperatorHandle& op,
    const torch::jit::Stack& arguments,
    codec::NumberedObjects& objects);

} // namespace openreg::aten
