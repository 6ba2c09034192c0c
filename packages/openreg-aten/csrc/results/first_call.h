// SPDX-License-Identifier: BSD-3-Clause
// What a call makes whose metadata was not seen before.
//
// A dry run calls the CPU's kernel on the host, with zeros for all values, or
// else with ones. It takes as long as the kernel, and waits for nothing.
#pragma once

#include "facts/operator_info.h"
#include "results/output_metadata.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include <memory>

namespace openreg::aten {

/// What the call of an operator with `key` and the arguments on `stack` makes,
/// which is cached, by the kernel of `target`; null if that raises an exception
/// or warns: it does so again in the caller's thread, when its turn has come.
std::shared_ptr<const OutputMetadata> dry_run(
    const c10::OperatorHandle& target,
    const OperatorInfo& info,
    const CallKey& key,
    const torch::jit::Stack& stack);

} // namespace openreg::aten
