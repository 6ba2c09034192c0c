// SPDX-License-Identifier: BSD-3-Clause
// Tests that two processes run together.
#pragma once

#if defined(_WIN32)
#include "two_processes_windows.h"
#else
#include "support.h"

#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <type_traits>
#include <unistd.h>

/// The other process, seen from one of the two.
class OtherProcess {
 public:
  OtherProcess(int channel, pid_t process)
      : channel_(channel), process_(process) {}

  template <typename T>
  void send(const T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    EXPECT_EQ(
        ::send(channel_, &value, sizeof(value), MSG_NOSIGNAL),
        static_cast<ssize_t>(sizeof(value)));
  }
  /// Ends this process if the other one has ended.
  template <typename T>
  T receive() {
    static_assert(std::is_trivially_copyable_v<T>);
    T value{};
    if (recv(channel_, &value, sizeof(value), MSG_WAITALL) != sizeof(value)) {
      std::fputs("the other process has ended\n", stderr);
      std::_Exit(1);
    }
    return value;
  }
  /// Signals the other process to continue.
  void signal() {
    send('.');
  }
  void wait() {
    receive<char>();
  }

  pid_t id() const {
    return process_;
  }
  void kill() const {
    ::kill(process_, SIGKILL);
  }
  /// Waits until the process has ended, but leaves it as a zombie.
  void wait_for_end() const {
    siginfo_t info;
    EXPECT_EQ(
        waitid(P_PID, static_cast<id_t>(process_), &info, WEXITED | WNOWAIT),
        0);
  }

 private:
  int channel_;
  pid_t process_;
};

/// Runs `theirs` in a forked process and `ours` in this one, and ends: with 0
/// if nothing failed in either, and neither has resources left. Needs a fresh
/// process, because one that has used devices cannot fork.
template <typename Theirs, typename Ours>
[[noreturn]] void run_two_processes(Theirs theirs, Ours ours) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) {
    std::_Exit(1);
  }
  for (const int end : ends) {
    fcntl(end, F_SETFD, FD_CLOEXEC); // macOS has no SOCK_CLOEXEC
  }
  const pid_t parent = getpid();
  const pid_t child = fork();
  close(ends[child == 0 ? 0 : 1]);
  const auto run = [](auto& body, OtherProcess other) {
    body(other);
    orResourceUsage usage = OPENREG_RESOURCE_USAGE_INIT;
    EXPECT_OK(orGetResourceUsage(&usage));
    usage.threads = 0; // workers may remain
    const orResourceUsage nothing = OPENREG_RESOURCE_USAGE_INIT;
    EXPECT_EQ(std::memcmp(&usage, &nothing, sizeof(usage)), 0);
  };
  if (child == 0) {
    run(theirs, {ends[1], parent});
    finish();
  }
  run(ours, {ends[0], child});
  close(ends[0]); // ends the other process if it still waits
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) || WTERMSIG(status) == SIGKILL);
  EXPECT_EQ(WIFEXITED(status) ? WEXITSTATUS(status) : 0, 0);
  finish();
}

/// A test that run_two_processes() succeeds with the arguments.
#define EXPECT_TWO_PROCESSES(...)                                        \
  do {                                                                   \
    use_fresh_processes();                                               \
    EXPECT_EXIT(                                                         \
        run_two_processes(__VA_ARGS__), testing::ExitedWithCode(0), ""); \
  } while (false)

/// A test that the process of the second function dies with this text.
#define EXPECT_DEATH_OF_TWO_PROCESSES(text, ...)        \
  do {                                                  \
    use_fresh_processes();                              \
    EXPECT_DEATH(run_two_processes(__VA_ARGS__), text); \
  } while (false)
#endif
