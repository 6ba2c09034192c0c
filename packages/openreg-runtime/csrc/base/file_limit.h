// SPDX-License-Identifier: BSD-3-Clause
// The file size limit, which also applies to memory files.
#pragma once

#include <cstddef>

namespace openreg {

/// Throws orErrorMemoryAllocation if this process may not have a file of `size`
/// bytes, which `what` needs. Without the check, SIGXFSZ would end the process.
void check_file_size(std::size_t size, const char* what);

} // namespace openreg
