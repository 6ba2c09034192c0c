// SPDX-License-Identifier: BSD-3-Clause
// Copies of the library among the loaded ones. Copies in other namespaces of
// the dynamic linker are not found.
#include "platform/library.h"

#include <cstdint>
#include <dlfcn.h>
#include <string_view>
#include <vector>
#if defined(__APPLE__)
#include <mach-o/dyld.h>
#else
#include <link.h>
#endif

namespace openreg::platform {
namespace {

constexpr std::string_view kLibrary = "libopenreg.";

std::vector<std::string> loaded_libraries() {
  std::vector<std::string> paths;
#if defined(__APPLE__)
  for (std::uint32_t i = 0; i < _dyld_image_count(); ++i) {
    if (const char* path = _dyld_get_image_name(i)) {
      paths.emplace_back(path);
    }
  }
#else
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* found) {
        static_cast<std::vector<std::string>*>(found)->emplace_back(
            info->dlpi_name);
        return 0;
      },
      &paths);
#endif
  return paths;
}

/// Whether a loaded copy has devices, also in the parent of a forked child.
bool is_in_use(const std::string& path) {
  void* library = dlopen(path.c_str(), RTLD_LAZY | RTLD_NOLOAD);
  if (library == nullptr) {
    return false;
  }
  int used = 0;
  const auto ask =
      reinterpret_cast<int (*)(int*)>(dlsym(library, "orIsInitialized"));
  const bool fails = ask != nullptr && ask(&used) != 0;
  dlclose(library);
  return fails || used != 0;
}

} // namespace

Copies find_copies() {
  Copies result;
  result.own = own_library();
  for (const std::string& path : loaded_libraries()) {
    const std::string_view name =
        std::string_view(path).substr(path.rfind('/') + 1);
    if (name.starts_with(kLibrary) && path != result.own) {
      result.in_use |= is_in_use(path);
      result.others.insert(path);
    }
  }
  return result;
}

} // namespace openreg::platform
