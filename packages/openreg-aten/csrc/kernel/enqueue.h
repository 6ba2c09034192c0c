// SPDX-License-Identifier: BSD-3-Clause
// Operators that run later, by the executor of their stream.
//
// As on a device, the host makes the results and goes on. The kernel gets
// aliases of device memory and no tensor of the host; memory that the host
// frees meanwhile is reused in stream order only, which is the allocator's
// rule.
//
// An operator on an idle stream with little to do runs at once on the calling
// thread, as if the device had been that fast: a change of threads would take
// longer.
#pragma once

#include "kernel/cpu_aliases.h"
#include "kernel/first_call.h"
#include "kernel/output_metadata.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

namespace openreg::aten {

/// Whether an operator over `bytes` bytes of operands is worth enqueueing on
/// the device's current stream, or has to wait there.
bool enqueues(c10::DeviceIndex device, size_t bytes);

/// Whether the device's current stream has work.
bool is_busy(c10::DeviceIndex device);

/// Whether this thread runs a kernel of the device's current stream: what
/// that kernel calls runs at once.
bool runs_here(c10::DeviceIndex device);

/// The metadata of what a call makes, if the call is to be enqueued and that is
/// cached, or its meta kernel or a dry run says it; else null. `arguments`
/// makes a stack of all its arguments.
template <typename MakeStack>
std::shared_ptr<const OutputMetadata> output_metadata_if_enqueued(
    const c10::OperatorHandle& op,
    const OperatorInfo& info,
    const CallKey& key,
    c10::DeviceIndex device,
    const MakeStack& arguments) {
  if (!key.usable() || !enqueues(device, key.bytes())) {
    return nullptr;
  }
  auto outputs = find_output_metadata(key);
  if (C10_LIKELY(outputs != nullptr)) {
    return outputs;
  }
  // On an idle stream a small call has run sooner than its meta kernel, and any
  // call sooner than a dry run.
  constexpr size_t kWorthAsking = size_t{1} << 20;
  const bool busy = is_busy(device);
  if (!busy && key.bytes() < kWorthAsking) {
    return nullptr;
  }
  const torch::jit::Stack stack = arguments();
  outputs = ask_meta_kernel(op, info, key, stack);
  return outputs != nullptr || !busy ? outputs : dry_run(op, info, key, stack);
}

/// Caches what a call that has run made: new tensors, or tensors that it
/// wrote to and gave other sizes.
inline void cache_call(
    const CallKey& key,
    at::ArrayRef<at::Tensor> made,
    at::ArrayRef<at::Tensor> resized) {
  cache_output_metadata(key, made, resized);
  remember_dtypes(key);
}

/// Uninitialized device tensors with this metadata.
std::vector<at::Tensor> make_results(
    c10::DeviceIndex device,
    at::ArrayRef<TensorMetadata> outputs);

/// Gives a tensor that an operator writes to the sizes of its result, with
/// PyTorch's warning if it had elements.
void resize_result(const at::Tensor& tensor, at::IntArrayRef sizes);

/// Enqueues the CPU kernel that `op` has, with aliased arguments on `stack`,
/// on the device's current stream. New tensors that it makes go to the memory
/// of `results`. A failure is reported by the next synchronizing call. If they
/// have other strides than the kernel gives them, it is told to the call that
/// `digest` stands for, so that the next one has the kernel's; 0 is none.
void enqueue(
    const c10::OperatorHandle& op,
    c10::DeviceIndex device,
    CpuAliases& aliases,
    torch::jit::Stack&& stack,
    const std::vector<at::Tensor>& results,
    uint64_t digest = 0);

} // namespace openreg::aten
