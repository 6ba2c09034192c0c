// SPDX-License-Identifier: BSD-3-Clause
// The operators with structured kernels, by family. Each family is a separate
// file, so that they compile in parallel.
#pragma once

#include <torch/library.h>

namespace openreg::aten {

void add_structured_unary(torch::Library& library);
void add_structured_binary(torch::Library& library);
void add_structured_special(torch::Library& library);
void add_structured_activations(torch::Library& library);

} // namespace openreg::aten
