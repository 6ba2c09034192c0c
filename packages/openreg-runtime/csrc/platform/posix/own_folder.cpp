// SPDX-License-Identifier: BSD-3-Clause
// A folder for temporary files of one user.
#include "platform/posix/own_folder.h"

#include <cerrno>
#include <cstdio>
#include <dirent.h>
#include <fcntl.h>
#include <string_view>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace openreg::platform {
namespace {

// Suffixes of a process's names.
constexpr std::string_view kSocket = ".socket";

/// The same for all processes of the user, whatever their environment.
const std::string& own_folder() {
  static const auto* folder = [] {
    std::string parent = "/tmp/";
#if defined(__APPLE__)
    char path[256];
    const std::size_t size =
        confstr(_CS_DARWIN_USER_TEMP_DIR, path, sizeof(path));
    if (size > 0 && size <= sizeof(path)) {
      parent = path;
    }
#endif
    return new std::string(
        parent + "openreg-" + std::to_string(geteuid()) + "/");
  }();
  return *folder;
}

} // namespace

Result make_own_folder() {
  if (mkdir(own_folder().c_str(), 0700) != 0 && errno != EEXIST) {
    return Result::last();
  }
  struct stat status{};
  std::string path = own_folder();
  path.pop_back(); // with the slash, lstat() follows a link
  if (lstat(path.c_str(), &status) != 0) {
    return Result::last();
  }
  const bool ours = S_ISDIR(status.st_mode) && status.st_uid == geteuid() &&
      (status.st_mode & 077) == 0;
  return ours ? Result() : Result(EACCES);
}

std::string file_of(ProcessId process) {
  char name[32];
  std::snprintf(
      name,
      sizeof(name),
      "%u-%08x",
      number_of(process),
      static_cast<unsigned>(process >> 32));
  return own_folder() + name;
}

std::string socket_of(ProcessId process) {
  return file_of(process).append(kSocket);
}

void clean_own_folder() noexcept {
  DIR* folder = opendir(own_folder().c_str());
  if (folder == nullptr) {
    return;
  }
  while (const dirent* entry = readdir(folder)) {
    const std::string_view name = entry->d_name;
    if (name.starts_with('.') || name.ends_with(kSocket)) {
      continue;
    }
    const std::string path = own_folder() + entry->d_name;
    const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (file >= 0) {
      if (flock(file, LOCK_EX | LOCK_NB) == 0) {
        unlink((path + std::string(kSocket)).c_str());
        unlink(path.c_str());
      }
      close(file);
    }
  }
  closedir(folder);
}

bool is_locked(int descriptor) noexcept {
  if (flock(descriptor, LOCK_SH | LOCK_NB) != 0) {
    return true;
  }
  flock(descriptor, LOCK_UN);
  return false;
}

} // namespace openreg::platform
