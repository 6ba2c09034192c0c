// SPDX-License-Identifier: BSD-3-Clause
// Operators that PyTorch calls for CUDA tensors and no others.
#pragma once

#include <torch/library.h>

namespace openreg::aten {

/// Registers the operators with the CUDA key, the key of `library`.
void add_cuda_operators(torch::Library& library);

} // namespace openreg::aten
