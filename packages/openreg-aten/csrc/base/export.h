// SPDX-License-Identifier: BSD-3-Clause
// Marks functions and variables that the Python module uses.
#pragma once

#if !defined(_WIN32)
#define OPENREG_ATEN_API __attribute__((visibility("default")))
#elif defined(openreg_aten_EXPORTS) // CMake defines it for the library
#define OPENREG_ATEN_API __declspec(dllexport)
#else
#define OPENREG_ATEN_API __declspec(dllimport)
#endif
