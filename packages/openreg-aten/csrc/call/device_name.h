// SPDX-License-Identifier: BSD-3-Clause
// The device's name in errors of CPU kernels.
#pragma once

#include <string>

namespace openreg::aten {

/// Names the device where PyTorch's error about a dtype without a kernel names
/// the CPU: "geqrf_cpu" not implemented for 'Half'. Other text stays as it is.
std::string name_device(std::string text);

} // namespace openreg::aten
