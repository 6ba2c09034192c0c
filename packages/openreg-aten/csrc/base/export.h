// SPDX-License-Identifier: BSD-3-Clause
// Marks functions and variables that the Python module uses.
#pragma once

#define OPENREG_ATEN_API __attribute__((visibility("default")))
