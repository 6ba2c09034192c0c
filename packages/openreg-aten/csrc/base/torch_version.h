// SPDX-License-Identifier: BSD-3-Clause
// The differences between the supported versions of torch.
#pragma once

#include <torch/headeronly/version.h>

// Operators that torch 2.14 removed. Each is the last element of a list.
#if TORCH_VERSION_MINOR < 14
#define OPENREG_OPERATORS_BEFORE_2_14(...) , __VA_ARGS__
#else
#define OPENREG_OPERATORS_BEFORE_2_14(...)
#endif

// Dtypes that torch 2.14 added. Each precedes other dtypes in a list.
#if TORCH_VERSION_MINOR < 14
#define OPENREG_DTYPES_SINCE_2_14
#else
#define OPENREG_DTYPES_SINCE_2_14 c10::ScalarType::BComplex32,
#endif
