// SPDX-License-Identifier: BSD-3-Clause
// Fork and exit.
#include "support.h"

#include <atomic>
#include <chrono>
#include <functional>
#include <thread>

namespace {

using Exit = FreshProcess;
using Clock = std::chrono::steady_clock;

TEST(orMalloc, InAForkedChildIsInitialization) {
#if defined(_WIN32)
  GTEST_SKIP() << "Windows does not fork";
#else
  const Block block(64);
  const int status = fork_and_run([&block] {
    void* pointer = nullptr;
    const std::string message = "a forked child cannot use them";
    return orMalloc(&pointer, 64) == orErrorInitialization &&
            std::string(orGetErrorMessage()).find(message) !=
                std::string::npos &&
            orFree(block.get()) == orErrorInitialization &&
            orStreamSynchronize(nullptr) == orErrorInitialization
        ? 0
        : 1;
  });
  EXPECT_EQ(status, 0);
#endif
}

TEST_F(Exit, ForkBeforeUseIsFine) {
#if defined(_WIN32)
  GTEST_SKIP() << "Windows does not fork";
#else
  EXPECT_EXIT(
      {
        int count = 0;
        EXPECT_OK(orGetDeviceCount(&count)); // does not start devices
        std::_Exit(fork_and_run([] {
          void* pointer = nullptr;
          return orMalloc(&pointer, 64) == orSuccess ? 0 : 1;
        }));
      },
      testing::ExitedWithCode(0),
      "");
#endif
}

TEST_F(Exit, ChildForkedWhileAKernelRunsExits) {
#if defined(_WIN32)
  GTEST_SKIP() << "Windows does not fork";
#else
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
#endif
}

TEST_F(Exit, QueuedWorkIsDropped) {
  EXPECT_EXIT(
      {
        static auto& started = *new Signal; // a worker may still use it
        static auto& released = *new Signal;
        static auto& ended = *new Signal;
        std::atexit([] { // runs after the library's handler
          released.set();
          ended.wait();
          for (int i = 0; i < 1000; ++i) {
            std::this_thread::yield(); // undropped work would run now
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

TEST_F(Exit, ErrorInAnExitHandlerHasAText) {
  EXPECT_EXIT(
      {
        std::atexit([] {
          static_cast<void>(orSetDevice(77));
          std::fputs(orGetErrorMessage(), stderr);
        });
        static_cast<void>(orSetDevice(99)); // sets a last error
        std::exit(0);
      },
      testing::ExitedWithCode(0),
      "^orSetDevice: device 77 does not exist");
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
        static auto& never = *new Signal; // used until the end
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
        static auto& never = *new Signal; // used until the end
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

/// Queues more kernels than can run while the process exits.
void queue_slow_kernels(orStream_t stream, int count) {
  for (int i = 0; i < count; ++i) {
    EXPECT_OK(orLaunchKernel(stream, [] {
      const auto end = Clock::now() + std::chrono::milliseconds(20);
      while (Clock::now() < end) {
        std::this_thread::yield();
      }
    }));
  }
}

/// A call for an exit handler that runs after the library's handler and prints
/// the result. Must be set before the library is used.
std::function<orError_t()>& at_exit() {
  static auto& call = *new std::function<orError_t()>;
  std::atexit(
      [] { std::fprintf(stderr, "at exit: %s\n", orGetErrorName(call())); });
  return call;
}

TEST_F(Exit, EventOfDroppedWorkIsReached) {
  EXPECT_EXIT(
      {
        auto& call = at_exit();
        orEvent_t event = nullptr;
        EXPECT_OK(orEventCreate(&event));
        queue_slow_kernels(nullptr, 50);
        EXPECT_OK(orEventRecord(event, nullptr));
        call = [event] { return orEventSynchronize(event); };
        std::exit(0);
      },
      testing::ExitedWithCode(0),
      "at exit: orSuccess");
}

TEST_F(Exit, StreamThatWaitsForDroppedWorkIsDone) {
  EXPECT_EXIT(
      {
        auto& call = at_exit();
        orStream_t working = nullptr;
        orStream_t waiting = nullptr;
        orEvent_t event = nullptr;
        EXPECT_OK(orStreamCreate(&working));
        EXPECT_OK(orStreamCreate(&waiting));
        EXPECT_OK(orEventCreate(&event));
        queue_slow_kernels(working, 50);
        EXPECT_OK(orEventRecord(event, working));
        EXPECT_OK(orStreamWaitEvent(waiting, event, 0));
        call = [waiting] { return orStreamSynchronize(waiting); };
        std::exit(0);
      },
      testing::ExitedWithCode(0),
      "at exit: orSuccess");
}

TEST_F(Exit, WaitForAKernelThatNeverReturnsIsTimeout) {
  EXPECT_EXIT(
      {
        auto& call = at_exit();
        static auto& never = *new Signal; // used until the end
        static auto& started = *new Signal;
        EXPECT_OK(orLaunchKernel(nullptr, [] {
          started.set();
          never.wait();
        }));
        started.wait();
        call = [] { return orStreamSynchronize(nullptr); };
        std::exit(0);
      },
      testing::ExitedWithCode(0),
      "at exit: orErrorTimeout");
}

TEST_F(Exit, CopyInAnExitHandlerWorks) {
  EXPECT_EXIT(
      {
        auto& call = at_exit();
        static char host[8] = {};
        void* block = nullptr;
        EXPECT_OK(orMalloc(&block, 8));
        queue_slow_kernels(nullptr, 50);
        call = [block] {
          return orMemcpy(host, block, 8, orMemcpyDeviceToHost);
        };
        std::exit(0);
      },
      testing::ExitedWithCode(0),
      "at exit: orSuccess");
}

TEST_F(Exit, EventThatIsRecordedInAnExitHandlerIsReached) {
  EXPECT_EXIT(
      {
        auto& call = at_exit();
        orEvent_t event = nullptr;
        EXPECT_OK(orEventCreate(&event));
        EXPECT_OK(orLaunchKernel(nullptr, [] {}));
        call = [event] {
          EXPECT_OK(orLaunchKernel(nullptr, [] { std::abort(); }));
          EXPECT_OK(orEventRecord(event, nullptr));
          return orEventSynchronize(event);
        };
        std::exit(0);
      },
      testing::ExitedWithCode(0),
      "at exit: orSuccess");
}

TEST_F(Exit, StreamPerThreadOfTheMainThreadSurvivesExitHandlers) {
  EXPECT_EXIT(
      {
        std::atexit([] {
          if (orLaunchKernel(orStreamPerThread, [] {}) != orSuccess) {
            std::_Exit(1);
          }
        });
        EXPECT_OK(orLaunchKernel(orStreamPerThread, [] {}));
        std::exit(0);
      },
      testing::ExitedWithCode(0),
      "");
}

} // namespace
