// SPDX-License-Identifier: BSD-3-Clause
// One pidfd per process, shared by all groups.
#include "transport/shared/process.h"

#include <map>
#include <mutex>
#include <poll.h>
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

std::shared_ptr<const Process> Process::find(pid_t number) {
  static std::mutex mutex;
  static auto* known = new std::map<pid_t, std::weak_ptr<const Process>>;
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
  close(file_);
}

bool Process::has_ended() const {
  pollfd request{file_, POLLIN, 0};
  return poll(&request, 1, 0) == 1;
}

} // namespace openreg::distributed
