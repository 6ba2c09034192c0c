// SPDX-License-Identifier: BSD-3-Clause
// The processes of other ranks on this host.
#pragma once

#include <memory>
#include <sys/types.h>

namespace openreg::distributed {

/// A process that is watched until its end, also if nobody waits for it.
class Process {
 public:
  /// Null if the system has no pidfd_open() or no such process.
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
