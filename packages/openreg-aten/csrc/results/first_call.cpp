// SPDX-License-Identifier: BSD-3-Clause
// First calls: dry runs.
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

/// Caches what a call of stand-ins has made; null if an enqueued call would
/// not do the same.
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
      key.bytes() > kMostDryRunBytes ||
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
  // It may have warned of nothing but a result of another size. And some
  // kernels refuse to divide by zero, and others to index with one.
  const bool warned = outcome == Outcome::kWarned;
  StandInCall again(
      info, Stack(stack), warned ? Setting::kEmptyResults : Setting::kOnes);
  if (!again.replace_arguments() || run(again, target) != Outcome::kDone) {
    return nullptr;
  }
  // Kernels may give an empty result other strides.
  const StandInCall& right = warned ? call : again;
  return cache(right, key, right.made());
}

} // namespace openreg::aten
