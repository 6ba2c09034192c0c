// SPDX-License-Identifier: BSD-3-Clause
// The limit of file sizes, which also counts for files in memory.
#pragma once

#include <cstddef>

namespace openreg {

/// Throws orErrorMemoryAllocation if this process may have no file of `size`
/// bytes, which `what` needs: the attempt would end it by the signal SIGXFSZ.
void check_file_size(std::size_t size, const char* what);

} // namespace openreg
