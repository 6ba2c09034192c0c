// SPDX-License-Identifier: BSD-3-Clause
// Logs the calls of the stress test's threads, and checks their results.
#pragma once

#include <openreg/openreg.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <string>

namespace stress {

/// Marks the test as failed, and prints the reason.
[[gnu::format(printf, 1, 2)]] void fail(const char* format, ...);
int failure_count();

/// The calls of one thread.
class Log {
 public:
  explicit Log(std::string name) : name_(std::move(name)) {}

  /// Makes a call, and checks that the header lists the returned code.
  template <typename Call>
  orError_t run(const char* function, Call&& call) {
    now_.store(function, std::memory_order_relaxed);
    const orError_t error = call();
    note(function, error);
    return error;
  }
  /// Describes an action of the thread that is not a call.
  void doing(const char* what) {
    now_.store(what, std::memory_order_relaxed);
  }

  const std::string& name() const {
    return name_;
  }
  std::uint64_t calls() const {
    return calls_.load(std::memory_order_relaxed);
  }
  const char* now() const {
    return now_.load(std::memory_order_relaxed);
  }
  using Counts = std::map<std::string, std::map<orError_t, std::uint64_t>>;
  /// Adds the thread's counters; the thread must have ended.
  void add_to(Counts& counts) const;

 private:
  void note(const char* function, orError_t error);

  static constexpr std::size_t kCodes = orErrorHostMemoryNotRegistered + 1;
  std::string name_;
  std::atomic<const char*> now_{"nothing"};
  std::atomic<std::uint64_t> calls_{0};
  std::map<const char*, std::array<std::uint64_t, kCodes>> counts_;
};

} // namespace stress

/// Calls a function of the C API.
#define STRESS_CALL(log, function, ...) \
  (log).run(#function, [&] { return function(__VA_ARGS__); })
