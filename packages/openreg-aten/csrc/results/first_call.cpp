// SPDX-License-Identifier: BSD-3-Clause
// Dry runs of first calls.
#include "results/first_call.h"

#include "device/gil.h"
#include "results/stand_ins.h"

#include <algorithm>
#include <exception>
#include <utility>

namespace openreg::aten {
namespace {

using torch::jit::Stack;

enum class Outcome { kDone, kWarned, kRaised };

Outcome run(StandInCall& call, const c10::OperatorHandle& op) {
  try {
    return call.run(op) ? Outcome::kDone : Outcome::kWarned;
  } catch (const std::exception&) {
    rethrow_interrupt();
    return Outcome::kRaised;
  }
}

/// Caches the results of a call with stand-ins. Returns null if an enqueued
/// call would behave differently.
std::shared_ptr<const OutputMetadata> cache(
    const StandInCall& call,
    const CallKey& key,
    const std::vector<at::Tensor>& made) {
  const bool are_there =
      std::all_of(made.begin(), made.end(), [&](const at::Tensor& each) {
        return !each.defined() || (each.is_cpu() && each.has_storage());
      });
  return are_there && !call.aliases_argument(made) && !call.has_hidden_change()
      ? cache_output_metadata(key, made, call.resized(), call.has_overlap())
      : nullptr;
}

} // namespace

std::shared_ptr<const OutputMetadata> dry_run(
    const c10::OperatorHandle& target,
    const OperatorInfo& info,
    const CallKey& key,
    const Stack& stack) {
  if (was_seen(key) || has_failed(key) || info.reads_requires_grad ||
      key.bytes() > kMaxDryRunBytes ||
      !target.hasComputedKernelForDispatchKey(c10::DispatchKey::CPU)) {
    return nullptr;
  }
  using Setting = StandInCall::Setting;
  StandInCall call(info, Stack(stack), Setting::kZeros);
  if (!call.replace_arguments()) {
    return nullptr;
  }
  const Outcome outcome = run(call, target);
  if (outcome == Outcome::kDone) {
    return cache(call, key, call.made());
  }
  // The only warning may have been about a resized result. Some kernels reject
  // zeros as divisors or probabilities. Others reject an index of one.
  const bool warned = outcome == Outcome::kWarned;
  StandInCall again(
      info, Stack(stack), warned ? Setting::kEmptyResults : Setting::kOnes);
  if (!again.replace_arguments() || run(again, target) != Outcome::kDone) {
    return nullptr;
  }
  // Kernels may return other strides for an empty result.
  const StandInCall& right = warned ? call : again;
  return cache(right, key, right.made());
}

} // namespace openreg::aten
