// SPDX-License-Identifier: BSD-3-Clause
// Fork and exit.
#include "support.h"

#include <atomic>
#include <chrono>
#include <functional>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace {

using Exit = FreshProcess;
using Clock = std::chrono::steady_clock;

TEST(orMalloc, InAForkedChildIsInitialization) {
  const Block block(64);
  const int status = fork_and_run([&block] {
    void* pointer = nullptr;
    const std::string message = "a forked child can not use them";
    return orMalloc(&pointer, 64) == orErrorInitialization &&
            std::string(orGetErrorMessage()).find(message) !=
                std::string::npos &&
            orFree(block.get()) == orErrorInitialization &&
            orStreamSynchronize(nullptr) == orErrorInitialization
        ? 0
        : 1;
  });
  EXPECT_EQ(status, 0);
}

TEST_F(Exit, ForkBeforeUseIsFine) {
  EXPECT_EXIT(
      {
        int count = 0;
        EXPECT_OK(orGetDeviceCount(&count)); // starts nothing
        std::_Exit(fork_and_run([] {
          void* pointer = nullptr;
          return orMalloc(&pointer, 64) == orSuccess ? 0 : 1;
        }));
      },
      testing::ExitedWithCode(0),
      "");
}

TEST_F(Exit, ChildForkedWhileAKernelRunsExits) {
  EXPECT_EXIT(
      {
        const Latch latch(nullptr);
        const pid_t child = fork();
        if (child == 0) {
          std::exit(3); // runs the exit handlers
        }
        int status = 0;
        waitpid(child, &status, 0);
        std::_Exit(WEXITSTATUS(status));
      },
      testing::ExitedWithCode(3),
      "");
}

TEST_F(Exit, QueuedWorkIsDropped) {
  EXPECT_EXIT(
      {
        static auto& started = *new Signal; // a worker may still use it
        static auto& released = *new Signal;
        static auto& ended = *new Signal;
        std::atexit([] { // runs after the library's, which gave up waiting
          released.set();
          ended.wait();
          for (int i = 0; i < 1000; ++i) {
            std::this_thread::yield(); // what is not dropped would run now
          }
        });
        EXPECT_OK(orLaunchKernel(nullptr, [] {
          started.set();
          released.wait();
          ended.set();
        }));
        EXPECT_OK(orLaunchKernel(nullptr, [] { std::fputs("ran", stderr); }));
        started.wait();
        std::exit(0);
      },
      testing::ExitedWithCode(0),
      "^$");
}

TEST_F(Exit, RunningKernelMayEnd) {
  EXPECT_EXIT(
      {
        static auto& started = *new Signal;
        static std::atomic<bool> exiting{false};
        EXPECT_OK(orInit());
        std::atexit([] { exiting = true; }); // runs before the library's
        EXPECT_OK(orLaunchKernel(nullptr, [] {
          started.set();
          while (!exiting) {
            std::this_thread::yield();
          }
          std::fputs("ended", stderr);
        }));
        started.wait();
        std::exit(0);
      },
      testing::ExitedWithCode(0),
      "ended");
}

TEST_F(Exit, KernelThatNeverReturnsDoesNotKeepTheProcess) {
  const auto start = Clock::now();
  EXPECT_EXIT(
      {
        static auto& never = *new Signal; // a worker uses it to the end
        static auto& started = *new Signal;
        EXPECT_OK(orLaunchKernel(nullptr, [] {
          started.set();
          never.wait();
        }));
        started.wait();
        std::exit(0);
      },
      testing::ExitedWithCode(0),
      "");
  EXPECT_LT(Clock::now() - start, std::chrono::seconds(20));
}

TEST_F(Exit, MemoryCanBeFreedFromAnExitHandler) {
  EXPECT_EXIT(
      {
        static auto& never = *new Signal; // a worker uses it to the end
        static auto& started = *new Signal;
        static void* pointer = nullptr;
        std::atexit([] { // runs after the library's
          std::fprintf(stderr, "free: %s\n", orGetErrorName(orFree(pointer)));
        });
        EXPECT_OK(orMalloc(&pointer, 64));
        EXPECT_OK(orLaunchKernel(nullptr, [] {
          started.set();
          never.wait();
        }));
        started.wait();
        std::exit(0);
      },
      testing::ExitedWithCode(0),
      "free: orSuccess");
}

} // namespace
