// SPDX-License-Identifier: BSD-3-Clause
// The list of wider dtypes, and whether kernels cast.
#include "facts/wider_dtypes.h"

namespace openreg::aten {
namespace {

WiderDtypesOf g_list = nullptr;
bool g_enabled = false;

} // namespace

bool set_wider_dtypes(WiderDtypesOf list) {
  g_list = list;
  return true;
}

WiderDtypes wider_dtypes_of(const c10::OperatorName& name) {
  return g_list(name);
}

void use_wider_dtypes() {
  g_enabled = true;
}

bool uses_wider_dtypes() {
  return g_enabled;
}

} // namespace openreg::aten
