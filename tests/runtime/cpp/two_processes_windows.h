// SPDX-License-Identifier: BSD-3-Clause
// Tests that two processes run together, on Windows: the second one runs the
// same test, up to the macro that has started it.
#pragma once

#include "support.h"

#include <cstring>
#include <string>
#include <type_traits>

/// The other process, seen from one of the two.
class OtherProcess {
 public:
  /// The status of a process that kill() has ended.
  static constexpr int kKilled = 137;

  /// Starts the process for the macro in this line of a test.
  static OtherProcess start(const char* test, int line);
  /// Whether this process was started for the macro in this line.
  static bool is_this(int line);
  /// The process that has started this one.
  static OtherProcess starter();

  template <typename T>
  void send(const T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    EXPECT_TRUE(write(&value, sizeof(value)));
  }
  /// Ends this process if the other one has ended.
  template <typename T>
  T receive() {
    static_assert(std::is_trivially_copyable_v<T>);
    T value{};
    if (!read(&value, sizeof(value))) {
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

  int id() const {
    return id_;
  }
  void kill() const;
  /// Waits until the process has ended.
  void wait_for_end() const;
  /// Ends the other process if it still waits; returns its status.
  int close();

 private:
  OtherProcess(void* read, void* write, void* process, int id)
      : read_(read), write_(write), process_(process), id_(id) {}

  bool write(const void* bytes, std::size_t size);
  bool read(void* bytes, std::size_t size);

  void* read_; // handles
  void* write_;
  void* process_;
  int id_;
};

/// Fails the test if this process has resources left.
template <typename Body>
void run_in_process(Body& body, OtherProcess other) {
  body(other);
  orResourceUsage usage = OPENREG_RESOURCE_USAGE_INIT;
  EXPECT_OK(orGetResourceUsage(&usage));
  usage.threads = 0; // workers may remain
  const orResourceUsage nothing = OPENREG_RESOURCE_USAGE_INIT;
  EXPECT_EQ(std::memcmp(&usage, &nothing, sizeof(usage)), 0);
}

/// Runs `theirs` and ends, if this process was started for that.
template <typename Theirs, typename Ours>
void run_if_other(int line, Theirs theirs, Ours /*ours*/) {
  if (OtherProcess::is_this(line)) {
    run_in_process(theirs, OtherProcess::starter());
    finish();
  }
}

/// Runs `theirs` in a new process and `ours` in this one, and ends: with 0 if
/// nothing failed in either, and neither has resources left.
template <typename Theirs, typename Ours>
[[noreturn]] void run_two_processes(int line, Theirs /*theirs*/, Ours ours) {
  const auto* info = testing::UnitTest::GetInstance()->current_test_info();
  const std::string test =
      std::string(info->test_suite_name()) + "." + info->name();
  OtherProcess other = OtherProcess::start(test.c_str(), line);
  run_in_process(ours, other);
  const int status = other.close();
  EXPECT_TRUE(status == 0 || status == OtherProcess::kKilled) << status;
  finish();
}

/// A test that run_two_processes() succeeds with the arguments.
#define EXPECT_TWO_PROCESSES(...)                 \
  do {                                            \
    run_if_other(__LINE__, __VA_ARGS__);          \
    use_fresh_processes();                        \
    EXPECT_EXIT(                                  \
        run_two_processes(__LINE__, __VA_ARGS__), \
        testing::ExitedWithCode(0),               \
        "");                                      \
  } while (false)

/// A test that the process of the second function dies with this text.
#define EXPECT_DEATH_OF_TWO_PROCESSES(text, ...)                  \
  do {                                                            \
    run_if_other(__LINE__, __VA_ARGS__);                          \
    use_fresh_processes();                                        \
    EXPECT_DEATH(run_two_processes(__LINE__, __VA_ARGS__), text); \
  } while (false)
