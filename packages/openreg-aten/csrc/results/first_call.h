// SPDX-License-Identifier: BSD-3-Clause
// Predicts the results of a call whose metadata was not seen before.
//
// A dry run calls the CPU kernel on the host, first with zeros and, if that
// fails, with ones. It takes as long as the kernel, but does not wait for the
// stream.
#pragma once

#include "facts/operator_info.h"
#include "results/output_metadata.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include <memory>

namespace openreg::aten {

/// Dry-runs the kernel of `target` for a call with `key` and the arguments on
/// `stack`, and caches the predicted metadata of the results. Returns null if
/// the kernel throws or warns: the actual call then does the same, in stream
/// order.
std::shared_ptr<const OutputMetadata> dry_run(
    const c10::OperatorHandle& target,
    const OperatorInfo& info,
    const CallKey& key,
    const torch::jit::Stack& stack);

} // namespace openreg::aten
