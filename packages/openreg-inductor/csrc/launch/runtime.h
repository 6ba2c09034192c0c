// SPDX-License-Identifier: BSD-3-Clause
// The functions of libopenreg_inductor for C++ wrappers. This text is copied
// into each wrapper, after launch.h.
#pragma once

#include "launch/launch.h"

#include <torch/csrc/inductor/aoti_torch/c/shim.h>

extern "C" {

/// Finds the kernel address of the tensor argument `number` of `kernel`. Fails
/// as find_operand().
AOTI_TORCH_EXPORT AOTITorchError openreg_inductor_find_operand(
    AtenTensorHandle tensor,
    int64_t device,
    const char* kernel,
    size_t number,
    openreg::inductor::Operand* operand);

/// Runs a kernel in the order of the current stream or enqueues it.
AOTI_TORCH_EXPORT AOTITorchError
openreg_inductor_launch(const openreg::inductor::Call* call);

/// Makes a device current; returns the previous one.
AOTI_TORCH_EXPORT AOTITorchError
openreg_inductor_exchange_device(int32_t device, int32_t* previous);

/// Returns a copy of the name that stays valid when the model's library is
/// unloaded.
AOTI_TORCH_EXPORT const char* openreg_inductor_keep_name(const char* name);

} // extern "C"
