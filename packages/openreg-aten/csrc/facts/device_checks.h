// SPDX-License-Identifier: BSD-3-Clause
// Which operators want all their tensors on one device, numbers too.
#pragma once

#include <string>

namespace openreg::aten {

/// Whether an operator, by the name of its schema, refuses a CPU tensor of no
/// dimensions beside tensors of the device, as on CUDA.
bool checks_devices(const std::string& name);

} // namespace openreg::aten
