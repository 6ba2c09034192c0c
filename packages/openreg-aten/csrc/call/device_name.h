// SPDX-License-Identifier: BSD-3-Clause
// Replaces "cpu" with the device name in errors of CPU kernels.
#pragma once

#include <string>

namespace openreg::aten {

/// Names the device instead of the CPU in PyTorch's error about a dtype without
/// a kernel: "geqrf_cpu" not implemented for 'Half'. Returns other texts
/// unchanged.
std::string name_device(std::string text);

} // namespace openreg::aten
