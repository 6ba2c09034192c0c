// SPDX-License-Identifier: BSD-3-Clause
// Enqueues operators, which the executor of their stream runs later.
//
// The kernel gets aliases of device memory and no host tensors. The allocator
// reuses memory that the host frees before the kernel runs only in stream
// order.
#pragma once

#include "alias/cpu_aliases.h"
#include "results/output_metadata.h"

#include <openreg/activity.h>

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

namespace openreg::aten {

/// Returns uninitialized device tensors with this metadata.
std::vector<at::Tensor> make_results(
    c10::DeviceIndex device,
    at::ArrayRef<TensorMetadata> outputs);

/// Enqueues the CPU kernel of `op`, with aliased arguments on `stack`, on the
/// current stream of the device. The kernel writes new tensors to the memory of
/// `results`. The next synchronizing call reports a failure. If the strides
/// differ from the prediction, they are stored for the call with this `digest`,
/// so that the next one uses them; 0 means none. With `by_message` the call is
/// sent as a message if its arguments can be encoded. `info` describes the
/// launch, and is null if no records need it.
void enqueue(
    const c10::OperatorHandle& op,
    c10::DeviceIndex device,
    CpuAliases& aliases,
    torch::jit::Stack&& stack,
    const std::vector<at::Tensor>& results,
    uint64_t digest,
    bool by_message,
    const orLaunchInfo* info);

} // namespace openreg::aten
