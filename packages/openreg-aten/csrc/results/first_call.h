// SPDX-License-Identifier: BSD-3-Clause
// What a call makes whose metadata was not seen before.
//
// A meta kernel does an operator's work on metadata alone: the C++ ones of
// structured operators, composite ones, and those in Python of
// torch._meta_registrations, which take the GIL. They say little of what the
// CPU's kernel refuses, so they are not asked about everything (meta_trust.h).
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

/// What the call of `op` with `key` and the arguments on `stack` makes, which
/// is cached; null if no meta kernel says it, or it is not to be trusted.
/// If the meta kernel raises an exception or warns, the CPU's kernel decides.
std::shared_ptr<const OutputMetadata> ask_meta_kernel(
    const c10::OperatorHandle& op,
    const OperatorInfo& info,
    const CallKey& key,
    torch::jit::Stack stack);

/// The same by a dry run; null if the kernel raises an exception or warns: it
/// does so again in the caller's thread, when its turn has come.
std::shared_ptr<const OutputMetadata> dry_run(
    const c10::OperatorHandle& op,
    const OperatorInfo& info,
    const CallKey& key,
    const torch::jit::Stack& stack);

} // namespace openreg::aten
