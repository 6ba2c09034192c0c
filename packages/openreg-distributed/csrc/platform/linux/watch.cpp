// SPDX-License-Identifier: BSD-3-Clause
// One pidfd per process, shared by all groups; and the names that Linux has for
// hosts and cores.
#include "platform/process.h"

#include <fstream>
#include <map>
#include <mutex>
#include <poll.h>
#include <sched.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace openreg::distributed {
namespace {

#ifdef SYS_pidfd_open
constexpr long kPidfdOpen = SYS_pidfd_open;
#else
constexpr long kPidfdOpen = 434; // newer than the headers of manylinux_2_28
#endif

} // namespace

std::shared_ptr<const Process> Process::find(int number) {
  static std::mutex mutex;
  static auto* known = new std::map<int, std::weak_ptr<const Process>>;
  const std::lock_guard lock(mutex);
  std::erase_if(*known, [](const auto& each) { return each.second.expired(); });
  if (auto process = (*known)[number].lock();
      process && !process->has_ended()) {
    return process;
  }
  const auto file = static_cast<int>(syscall(kPidfdOpen, number, 0));
  if (file < 0) {
    return nullptr;
  }
  const std::shared_ptr<const Process> process(new Process(number, file));
  (*known)[number] = process;
  return process;
}

Process::~Process() {
  close(static_cast<int>(handle_));
}

bool Process::has_ended() const {
  pollfd request{static_cast<int>(handle_), POLLIN, 0};
  return poll(&request, 1, 0) == 1;
}

ProcessPlace place_of_this_process() {
  ProcessPlace place{};
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  boot.copy(place.boot.data(), place.boot.size() - 1);
  struct stat status{};
  if (stat("/proc/self/ns/pid", &status) == 0) {
    place.process_numbers = status.st_ino;
  }
  place.user = user_number();
  return place;
}

int usable_cores() noexcept {
  cpu_set_t set;
  return sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 1;
}

} // namespace openreg::distributed
