// SPDX-License-Identifier: BSD-3-Clause
// Operators that run later, on a worker of their stream.
//
// As on a device, the host makes the results and goes on. The kernel gets views
// over device memory and no tensor of the host; memory that the host frees
// meanwhile is reused in stream order only, which is the allocator's rule.
//
// An operator on an idle stream with little to do runs at once on the calling
// thread, as if the device had been that fast: a change of threads would take
// longer.
#pragma once

#include "kernel/device_views.h"
#include "kernel/known_results.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

namespace openreg::aten {

/// Whether an operator over `bytes` bytes of operands is worth enqueueing on
/// the device's current stream, or has to wait there.
bool enqueues(c10::DeviceIndex device, size_t bytes);

/// Whether this thread runs a kernel of the device's current stream, which has
/// what it calls done at once.
bool runs_here(c10::DeviceIndex device);

/// What a call is known to make, if it is to be enqueued; else null.
inline std::shared_ptr<const KnownResults> results_if_enqueued(
    const CallKey& key,
    c10::DeviceIndex device) {
  return key.usable() && enqueues(device, key.bytes()) ? find_results(key)
                                                       : nullptr;
}

/// Uninitialized device tensors of the given looks.
std::vector<at::Tensor> make_results(
    c10::DeviceIndex device,
    at::ArrayRef<TensorLook> looks);

/// Gives a tensor that an operator writes to the sizes of its result, with
/// PyTorch's warning if it had elements.
void resize_result(const at::Tensor& tensor, at::IntArrayRef sizes);

/// Enqueues the CPU kernel that `op` has, with presented arguments on `stack`,
/// on the device's current stream. New tensors that it makes go to the memory
/// of `results`. A failure is reported by the next synchronizing call.
void enqueue(
    const c10::OperatorHandle& op,
    c10::DeviceIndex device,
    DeviceViews& views,
    torch::jit::Stack&& stack,
    const std::vector<at::Tensor>& results);

} // namespace openreg::aten
