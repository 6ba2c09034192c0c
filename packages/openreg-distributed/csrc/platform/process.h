// SPDX-License-Identifier: BSD-3-Clause
// The processes of this host.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>

namespace openreg::distributed {

/// Detects the end of a process, even if it becomes a zombie.
class Process {
 public:
  /// Null if the process does not exist or the system cannot watch it.
  static std::shared_ptr<const Process> find(int number);
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;
  ~Process();

  int number() const {
    return number_;
  }
  bool has_ended() const;

 private:
  Process(int number, intptr_t handle);

  int number_;
  intptr_t handle_; // of the system
  int owner_;       // the process that has found it
};

int process_number() noexcept;
int parent_number() noexcept;
uint64_t user_number() noexcept;
std::string host_name();

/// Equal for processes that can name each other by their numbers.
struct ProcessPlace {
  std::array<char, 40> boot; // of the host
  uint64_t process_numbers;  // the namespace
  uint64_t user;

  bool operator==(const ProcessPlace&) const = default;
};
ProcessPlace place_of_this_process();

/// Calls `callback` in each child that is forked later. False if memory is
/// exhausted.
bool call_in_children(void (*callback)()) noexcept;

/// The cores that this thread may use.
int usable_cores() noexcept;

} // namespace openreg::distributed
