// SPDX-License-Identifier: BSD-3-Clause
// Marks what the Python module uses of the library.
#pragma once

#define OPENREG_ATEN_API __attribute__((visibility("default")))
