// SPDX-License-Identifier: BSD-3-Clause
// What wrappers in C++ call of libopenreg_inductor. The text becomes a part of
// each, after launch.h.
#pragma once

#include "launch/launch.h"

#include <torch/csrc/inductor/aoti_torch/c/shim.h>

extern "C" {

/// Finds where a kernel reaches argument `number` of `kernel`, counted among
/// its tensors. Fails as find_operand().
AOTI_TORCH_EXPORT AOTITorchError openreg_inductor_find_operand(
    AtenTensorHandle tensor,
    int64_t device,
    const char* kernel,
    size_t number,
    openreg::inductor::Operand* operand);

/// Runs a kernel in the order of the current stream, or enqueues it.
AOTI_TORCH_EXPORT AOTITorchError
openreg_inductor_launch(const openreg::inductor::Call* call);

/// Makes a device current; gives the one that was.
AOTI_TORCH_EXPORT AOTITorchError
openreg_inductor_exchange_device(int32_t device, int32_t* previous);

/// Returns the same name at an address that stays valid when the library of a
/// model is unloaded.
AOTI_TORCH_EXPORT const char* openreg_inductor_keep_name(const char* name);

} // extern "C"
