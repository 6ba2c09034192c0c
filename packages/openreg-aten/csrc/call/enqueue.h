// SPDX-License-Identifier: BSD-3-Clause
// Operators that run later, by the executor of their stream.
//
// The kernel gets aliases of device memory and no tensor of the host; memory
// that the host frees meanwhile is reused in stream order only, which is the
// allocator's rule.
#pragma once

#include "alias/cpu_aliases.h"
#include "results/output_metadata.h"

#include <openreg/activity.h>

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

namespace openreg::aten {

/// Uninitialized device tensors with this metadata.
std::vector<at::Tensor> make_results(
    c10::DeviceIndex device,
    at::ArrayRef<TensorMetadata> outputs);

/// Enqueues the CPU kernel that `op` has, with aliased arguments on `stack`,
/// on the device's current stream. New tensors that it makes go to the memory
/// of `results`. A failure is reported by the next synchronizing call. If they
/// have other strides than the kernel gives them, it is told to the call that
/// `digest` stands for, so that the next one has the kernel's; 0 is none. With
/// `by_message` the call is encoded, if its arguments have an encoding. `info`
/// says what it is, and may be null where nobody asks.
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
