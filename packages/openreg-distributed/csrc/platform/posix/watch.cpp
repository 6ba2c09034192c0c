// SPDX-License-Identifier: BSD-3-Clause
// Ends of processes by kqueue(), where the system has it. Elsewhere a zombie
// counts as a process.
#include "platform/process.h"

#include <cerrno>
#include <csignal>
#include <signal.h>
#include <thread>
#include <unistd.h>
#if __has_include(<sys/event.h>)
#include <sys/event.h>
#define OPENREG_KQUEUE 1
#else
#define OPENREG_KQUEUE 0
#endif

namespace openreg::distributed {

std::shared_ptr<const Process> Process::find(int number) {
#if OPENREG_KQUEUE
  const int queue = kqueue();
  if (queue < 0) {
    return nullptr;
  }
  std::shared_ptr<const Process> process(new Process(number, queue));
  struct kevent change;
  EV_SET(
      &change,
      static_cast<uintptr_t>(number),
      EVFILT_PROC,
      EV_ADD,
      NOTE_EXIT,
      0,
      nullptr);
  return kevent(queue, &change, 1, nullptr, 0, nullptr) == 0 ? process
                                                             : nullptr;
#else
  return kill(number, 0) == 0
      ? std::shared_ptr<const Process>(new Process(number, -1))
      : nullptr;
#endif
}

Process::~Process() {
  // A forked child does not inherit the queue, and may have another file with
  // its number.
  if (handle_ >= 0 && owner_ == process_number()) {
    close(static_cast<int>(handle_));
  }
}

bool Process::has_ended() const {
#if OPENREG_KQUEUE
  if (owner_ == process_number()) {
    // The event is taken out of the queue, so it is added again: that fails
    // once the process is gone, and reports a zombie.
    const timespec now{};
    struct kevent event;
    EV_SET(
        &event,
        static_cast<uintptr_t>(number_),
        EVFILT_PROC,
        EV_ADD,
        NOTE_EXIT,
        0,
        nullptr);
    if (kevent(static_cast<int>(handle_), &event, 1, &event, 1, &now) != 1) {
      return false; // it runs, or the system could not check
    }
    return (event.flags & EV_ERROR) != 0 ? event.data == ESRCH
                                         : (event.fflags & NOTE_EXIT) != 0;
  }
#endif
  return kill(number_, 0) != 0 && errno == ESRCH;
}

ProcessPlace place_of_this_process() {
  ProcessPlace place{};
  host_name().copy(place.boot.data(), place.boot.size() - 1);
  place.user = user_number();
  return place;
}

int usable_cores() noexcept {
  const unsigned cores = std::thread::hardware_concurrency();
  return cores > 0 ? static_cast<int>(cores) : 1;
}

} // namespace openreg::distributed
