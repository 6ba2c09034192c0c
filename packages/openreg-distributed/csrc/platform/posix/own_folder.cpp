// SPDX-License-Identifier: BSD-3-Clause
// Checks the owner of a folder.
#include "platform/own_folder.h"

#include <c10/util/Exception.h>

#include <cerrno>
#include <cstring>
#include <sys/stat.h>
#include <unistd.h>

namespace openreg::distributed {

void make_own_folder(const std::string& path) {
  const int made = mkdir(path.c_str(), 0700);
  TORCH_CHECK(
      made == 0 || errno == EEXIST, "mkdir ", path, ": ", strerror(errno));
  struct stat found{};
  TORCH_CHECK(
      lstat(path.c_str(), &found) == 0 && S_ISDIR(found.st_mode) &&
          found.st_uid == geteuid(),
      path,
      " is not a directory that this user owns");
}

} // namespace openreg::distributed
