// SPDX-License-Identifier: BSD-3-Clause
// The file of this library.
#include "platform/library.h"

#include <dlfcn.h>

namespace openreg::platform {

std::string own_library() {
  Dl_info info{};
  return dladdr(reinterpret_cast<const void*>(&own_library), &info) != 0
      ? info.dli_fname
      : "";
}

} // namespace openreg::platform
