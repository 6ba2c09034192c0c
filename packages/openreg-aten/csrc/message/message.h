// SPDX-License-Identifier: BSD-3-Clause
// Calls as messages, and the replies to them: the host's side.
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

/// Whether calls go through messages: OPENREG_ISOLATION is not thread.
bool sends_messages();

/// Sends a message in the order of the current device's current stream, and
/// waits for the reply. `info` says what the device does.
void exchange(
    const orLaunchInfo& info,
    codec::ByteSpan message,
    codec::Bytes& reply);

/// Gives a message, which may be wrong, to the executor, wherever that is.
OPENREG_ATEN_API void ask_executor(
    codec::ByteSpan message,
    codec::Bytes& reply);

/// Gives a generator the state of its twin on `device`, if it has one there.
void fetch_generator(const at::Generator& generator, c10::DeviceIndex device);

/// Writes a call with CPU aliases as arguments. With `results`, the new tensors
/// go there; without, the reply describes them. False if an argument has no
/// encoding. `numbered` gets the tensors and storages of the arguments.
bool write_call(
    codec::Bytes& message,
    const c10::OperatorHandle& op,
    c10::DispatchKey key,
    c10::DeviceIndex device,
    const torch::jit::Stack& stack,
    const ResultPlaces* results,
    codec::Numbered& numbered);

/// Reads the reply to a call whose `count` results had their places; `tell`
/// gets what the kernel made if that is not what was predicted. Throws what it
/// threw.
void read_done(
    codec::ByteSpan reply,
    std::size_t count,
    c10::function_ref<void(std::vector<TensorMetadata>)> tell);

/// Reads the reply to a call that describes what it made: gives the aliases
/// among its arguments what it changed, makes its new tensors in memory of the
/// CPU's allocator, and lets them be filled. Returns the values that it
/// returned, or null if one has no encoding. Throws what the kernel threw, and
/// Malformed if the reply does what the operator cannot, when no tensor of the
/// device has changed.
std::optional<torch::jit::Stack> read_described(
    const codec::Bytes& reply,
    const c10::OperatorHandle& op,
    const torch::jit::Stack& arguments,
    codec::Numbered& numbered);

} // namespace openreg::aten
