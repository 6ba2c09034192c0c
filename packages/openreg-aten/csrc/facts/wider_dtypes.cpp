// SPDX-License-Identifier: BSD-3-Clause
// Stores which dtypes are widened.
#include "facts/wider_dtypes.h"

namespace openreg::aten {
namespace {

bool g_wider = false;
bool g_float32 = false;

} // namespace

void use_wider_dtypes() {
  g_wider = true;
}

bool uses_wider_dtypes() {
  return g_wider;
}

void use_float32_kernels() {
  g_float32 = true;
}

bool uses_float32_kernels() {
  return g_float32;
}

} // namespace openreg::aten
