// SPDX-License-Identifier: BSD-3-Clause
// The numbers of POSIX, and children.
#include "platform/process.h"

#include <array>
#include <pthread.h>
#include <unistd.h>

namespace openreg::distributed {

int process_number() noexcept {
  return static_cast<int>(getpid());
}

int parent_number() noexcept {
  return static_cast<int>(getppid());
}

uint64_t user_number() noexcept {
  return geteuid();
}

std::string host_name() {
  std::array<char, 256> host{};
  gethostname(host.data(), host.size() - 1);
  return host.data();
}

Process::Process(int number, intptr_t handle)
    : number_(number), handle_(handle), owner_(process_number()) {}

bool call_in_children(void (*callback)()) noexcept {
  return pthread_atfork(nullptr, nullptr, callback) == 0;
}

} // namespace openreg::distributed
