// SPDX-License-Identifier: BSD-3-Clause
// The operators with typed kernels, by family. Each family is a separate file,
// so that they compile in parallel.
#pragma once

#include <torch/library.h>

namespace openreg::aten {

void add_typed_pointwise(torch::Library& library);
void add_typed_layers(torch::Library& library);
void add_typed_images(torch::Library& library);
void add_typed_reductions(torch::Library& library);
void add_typed_linear_algebra(torch::Library& library);
void add_typed_data(torch::Library& library);
void add_typed_optimizers(torch::Library& library);

} // namespace openreg::aten
