// SPDX-License-Identifier: BSD-3-Clause
// What the kernels of the CPU ask of the program, beside their arguments.
#pragma once

#include "codec/wire.h"

namespace openreg::aten {

/// Writes the settings of at::Context that the CPU's kernels read, and the
/// default dtype.
void write_context(codec::Writer& out);

/// Reads them, and makes them those of this process if that is a device. Throws
/// Malformed.
void read_context(codec::Reader& in);

} // namespace openreg::aten
