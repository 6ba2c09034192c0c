// SPDX-License-Identifier: BSD-3-Clause
// Lookups by the dynamic linker.
#include "platform/library.h"

#include <dlfcn.h>

namespace openreg::aten::platform {

std::string library_of(const void* symbol) {
  Dl_info info{};
  return dladdr(symbol, &info) != 0 ? info.dli_fname : "";
}

Function find_function(const char* name) noexcept {
  return reinterpret_cast<Function>(dlsym(RTLD_DEFAULT, name));
}

} // namespace openreg::aten::platform
