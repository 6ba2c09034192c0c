// SPDX-License-Identifier: BSD-3-Clause
// The processes of other ranks on this host.
#pragma once

#include <memory>
#include <sys/types.h>

namespace openreg::distributed {

/// Detects the end of a process, even if it becomes a zombie.
class Process {
 public:
  /// Null if the system has no pidfd_open() or the process does not exist.
  static std::shared_ptr<const Process> find(pid_t number);
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;
  ~Process();

  pid_t number() const {
    return number_;
  }
  bool has_ended() const;

 private:
  Process(pid_t number, int file) : number_(number), file_(file) {}

  pid_t number_;
  int file_; // a pidfd
};

} // namespace openreg::distributed
