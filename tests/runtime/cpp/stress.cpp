// SPDX-License-Identifier: BSD-3-Clause
// A stress test: many threads use streams, events and memory of four devices
// while failures are injected and devices are lost and reset.
//
//   openreg_stress --seconds 10 --seed 1 --threads 8
//
// It fails if data is wrong although no failure has hit it, if a call returns
// an undocumented code, if the threads hang, or if resources are left at the
// end.
#include "stress_world.h"

#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>
#if defined(_WIN32)
#include "windows.h"
#endif

namespace {

using Clock = std::chrono::steady_clock;
using stress::Log;

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr std::chrono::seconds kStall{120};
#else
constexpr std::chrono::seconds kStall{30};
#endif

struct Options {
  std::uint64_t seconds = 5;
  std::uint64_t seed = 1;
  std::uint64_t threads = 8;
};

[[noreturn]] void explain(const char* program) {
  std::fprintf(
      stderr,
      "usage: %s [--seconds N] [--seed N] [--threads N, at least 2]\n",
      program);
  std::exit(2);
}

Options parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; i += 2) {
    std::uint64_t* option = nullptr;
    for (const auto& [name, value] :
         {std::pair{"--seconds", &options.seconds},
          std::pair{"--seed", &options.seed},
          std::pair{"--threads", &options.threads}}) {
      option = std::strcmp(argv[i], name) == 0 ? value : option;
    }
    char* end = nullptr;
    if (option == nullptr || i + 1 == argc ||
        (*option = std::strtoull(argv[i + 1], &end, 10), *end != '\0')) {
      explain(argv[0]);
    }
  }
  if (options.threads < 2) {
    explain(argv[0]);
  }
  return options;
}

/// Aborts when a thread has stopped making calls, and prints each thread's
/// action.
class Watchdog {
 public:
  explicit Watchdog(const std::vector<std::unique_ptr<Log>>& logs)
      : logs_(logs), seen_(logs.size()), since_(logs.size(), Clock::now()) {}

  void look() {
    for (std::size_t i = 0; i < logs_.size(); ++i) {
      const std::uint64_t calls = logs_[i]->calls();
      if (calls != seen_[i]) {
        seen_[i] = calls;
        since_[i] = Clock::now();
      } else if (Clock::now() - since_[i] > kStall) {
        std::fprintf(stderr, "nothing moves any more:\n");
        for (const auto& log : logs_) {
          std::fprintf(
              stderr,
              "  %s: %s, after %" PRIu64 " calls\n",
              log->name().c_str(),
              log->now(),
              log->calls());
        }
        std::abort();
      }
    }
  }

 private:
  const std::vector<std::unique_ptr<Log>>& logs_;
  std::vector<std::uint64_t> seen_;
  std::vector<Clock::time_point> since_;
};

std::uint64_t sum_of_calls(const std::vector<std::unique_ptr<Log>>& logs) {
  std::uint64_t sum = 0;
  for (const auto& log : logs) {
    sum += log->calls();
  }
  return sum;
}

void print_counts(const std::vector<std::unique_ptr<Log>>& logs) {
  Log::Counts counts;
  for (const auto& log : logs) {
    log->add_to(counts);
  }
  for (const auto& [function, codes] : counts) {
    std::printf("%-30s", function.c_str());
    for (const auto& [code, count] : codes) {
      const char* name = orGetErrorName(code);
      name += std::strlen(code == orSuccess ? "or" : "orError");
      std::printf(" %s %" PRIu64, name, count);
    }
    std::printf("\n");
  }
}

} // namespace

int main(int argc, char** argv) {
  const Options options = parse(argc, argv);
  setenv("OPENREG_DEVICE_COUNT", "4", 1);
  setenv("OPENREG_DEVICE_MEMORY", "256MiB", 1);

  std::vector<std::unique_ptr<Log>> logs;
  const auto new_log = [&logs](std::string name) -> Log& {
    return *logs.emplace_back(std::make_unique<Log>(std::move(name)));
  };
  Log& own = new_log("main");
  stress::World world(own);
  stress::Random seeds(options.seed);
  std::vector<std::thread> threads;
  const auto start = [&](const char* name, auto work) {
    Log& log = new_log(name + std::to_string(threads.size()));
    threads.emplace_back(
        [&world, &log, work, seed = seeds()] { work(world, log, seed); });
  };
  const std::uint64_t wild = options.threads / 4 + 1;
  for (std::uint64_t i = 0; i < options.threads; ++i) {
    i < wild ? start("wild thread ", stress::work_wildly)
             : start("orderly thread ", stress::work_orderly);
  }
  start("trouble ", stress::make_trouble);

  Watchdog watchdog(logs);
  const auto begin = Clock::now();
  for (std::uint64_t second = 1;; ++second) {
    std::this_thread::sleep_until(begin + std::chrono::seconds(second));
    own.run("orGetDeviceCount", [] {
      int count = 0;
      return orGetDeviceCount(&count);
    });
    watchdog.look();
    if (second % 10 == 0 || second == options.seconds) {
      std::printf(
          "%" PRIu64 " s: %" PRIu64 " calls, %" PRIu64 " resets, %d failures\n",
          second,
          sum_of_calls(logs),
          world.resets.load(),
          stress::failure_count());
      std::fflush(stdout);
    }
    if (second >= options.seconds) {
      break;
    }
  }

  world.stop = true;
  std::atomic<bool> ended{false};
  std::thread guard([&] { // detects hangs of the shutdown, too
    const auto limit = Clock::now() + kStall;
    while (!ended) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
      if (Clock::now() > limit) {
        watchdog.look();
      }
    }
  });
  for (auto& thread : threads) {
    thread.join();
  }
  stress::end_wild_work(own);
  world.finish(own);
  ended = true;
  guard.join();

  print_counts(logs);
  const int failures = stress::failure_count();
  std::printf(
      "%s: %" PRIu64 " calls, %" PRIu64 " resets, %d failures\n",
      failures == 0 ? "passed" : "FAILED",
      sum_of_calls(logs),
      world.resets.load(),
      failures);
  return failures == 0 ? 0 : 1;
}
