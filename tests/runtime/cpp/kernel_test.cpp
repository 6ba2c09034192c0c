// SPDX-License-Identifier: BSD-3-Clause
// Kernel launches: failures, arguments, many threads, launches from kernels.
#include "support.h"

#include <atomic>
#include <fstream>
#include <thread>
#if !defined(_WIN32)
#include <sys/resource.h>
#endif

namespace {

void count_up(void* args) {
  ++*static_cast<std::atomic<int>*>(args);
}

TEST(orLaunchKernel, ReturnsBeforeTheKernelHasRun) {
  const Stream stream;
  Latch latch(stream);
  std::atomic<int> count{0};
  ASSERT_OK(
      orLaunchKernel(stream, count_up, static_cast<void*>(&count), nullptr));
  EXPECT_EQ(count, 0);
  latch.release();
  ASSERT_OK(orStreamSynchronize(stream));
  EXPECT_EQ(count, 1);
}

TEST(orLaunchKernel, ThrowingKernelIsReportedOnceAtTheNextWait) {
  const Stream stream;
  std::atomic<int> count{0};
  ASSERT_OK(orLaunchKernel(stream, [] { throw std::runtime_error("broken"); }));
  ASSERT_OK(orLaunchKernel(stream, [&count] { ++count; }));
  EXPECT_EQ(orStreamSynchronize(stream), orErrorLaunchFailure);
  EXPECT_MESSAGE("broken");
  EXPECT_EQ(count, 0) << "the work behind the failure is dropped";
  ASSERT_OK(orLaunchKernel(stream, [&count] { ++count; }));
  EXPECT_OK(orStreamSynchronize(stream));
  EXPECT_EQ(count, 1) << "the failure was reported";
}

TEST(orLaunchKernelBlocking, BehindAFailureReturnsItAndDoesNotRun) {
  const Stream stream;
  int count = 0;
  const orKernel_t kernel = [](void* p) { ++*static_cast<int*>(p); };
  ASSERT_OK(orLaunchKernel(stream, [] { throw std::runtime_error("broken"); }));
  EXPECT_EQ(
      orLaunchKernelBlocking(stream, kernel, &count), orErrorLaunchFailure);
  EXPECT_MESSAGE("broken");
  EXPECT_EQ(count, 0);
  EXPECT_OK(orLaunchKernelBlocking(stream, kernel, &count));
  EXPECT_EQ(count, 1);
}

TEST(orLaunchKernel, CleanupFindsTheErrorOfAKernelThatFailedOrWasDropped) {
  struct Seen {
    orError_t failed = orSuccess;
    std::string of_dropped;
    orError_t ran = orErrorUnknown;
  } seen;
  const Stream stream;
  ASSERT_OK(orLaunchKernel(
      stream,
      [](void*) { throw std::runtime_error("broken"); },
      &seen,
      [](void* p) { static_cast<Seen*>(p)->failed = orGetLastError(); }));
  ASSERT_OK(orLaunchKernel(
      stream,
      [](void*) {},
      &seen,
      [](void* p) {
        static_cast<Seen*>(p)->of_dropped = orGetErrorMessage();
      }));
  EXPECT_EQ(orStreamSynchronize(stream), orErrorLaunchFailure);
  ASSERT_OK(orLaunchKernel(
      stream,
      [](void*) {},
      &seen,
      [](void* p) { static_cast<Seen*>(p)->ran = orGetLastError(); }));
  EXPECT_OK(orStreamSynchronize(stream));
  EXPECT_EQ(seen.failed, orErrorLaunchFailure);
  EXPECT_NE(seen.of_dropped.find("broken"), std::string::npos);
  EXPECT_EQ(seen.ran, orSuccess);
}

TEST(orStreamSynchronize, KeepsAFailureForThreadsWhoseWorkWasDroppedMeanwhile) {
  const Stream stream;
  Latch latch(stream);
  ASSERT_OK(orLaunchKernel(stream, [] { throw std::runtime_error("broken"); }));
  Signal waits;
  orError_t of_other = orSuccess;
  std::thread other([&] {
    waits.set();
    of_other = orStreamSynchronize(stream);
  });
  waits.wait();
  bool ran = false;
  ASSERT_OK(orLaunchKernel(stream, [&ran] { ran = true; }));
  latch.release();
  const orError_t of_this = orStreamSynchronize(stream);
  other.join();
  // If the other call came first, it must leave the failure; if it waited for
  // this launch too, one of the two reports it.
  EXPECT_TRUE(of_this != orSuccess || of_other != orSuccess);
  EXPECT_EQ(ran, false);
  EXPECT_OK(orStreamSynchronize(stream));
}

TEST(orLaunchKernel, FirstOfTwoFailuresIsReported) {
  const Stream stream;
  ASSERT_OK(orLaunchKernel(stream, [] { throw std::runtime_error("one"); }));
  ASSERT_OK(orLaunchKernel(stream, [] { throw std::runtime_error("two"); }));
  EXPECT_EQ(orStreamSynchronize(stream), orErrorLaunchFailure);
  EXPECT_MESSAGE("one");
}

TEST(orLaunchKernel, ThrownIntegerIsALaunchFailure) {
  const Stream stream;
  ASSERT_OK(orLaunchKernel(stream, [] { throw 1; }));
  EXPECT_EQ(orStreamSynchronize(stream), orErrorLaunchFailure);
}

TEST(orLaunchKernel, FailureStaysOnItsStream) {
  const Stream broken;
  const Stream other;
  ASSERT_OK(orLaunchKernel(broken, [] { throw std::runtime_error("broken"); }));
  ASSERT_OK(orLaunchKernel(other, [] {}));
  EXPECT_OK(orStreamSynchronize(other));
  EXPECT_EQ(orStreamSynchronize(broken), orErrorLaunchFailure);
}

TEST(orLaunchKernel, ArgumentsAreReleasedBeforeTheWaitReturns) {
  const Stream stream;
  auto value = std::make_shared<int>(1);
  for (int i = 0; i < 100; ++i) {
    ASSERT_OK(orLaunchKernel(stream, [value] {}));
  }
  ASSERT_OK(orStreamSynchronize(stream));
  EXPECT_EQ(value.use_count(), 1);
}

TEST(orLaunchKernel, ArgumentsOfAThrowingKernelAreReleased) {
  const Stream stream;
  auto value = std::make_shared<int>(1);
  ASSERT_OK(
      orLaunchKernel(stream, [value] { throw std::runtime_error("broken"); }));
  ASSERT_EQ(orStreamSynchronize(stream), orErrorLaunchFailure);
  EXPECT_EQ(value.use_count(), 1);
}

TEST(orLaunchKernel, ArgumentsOfAFailedLaunchStayWithTheCaller) {
  std::atomic<int> cleanups{0};
  orStream_t destroyed = nullptr;
  ASSERT_OK(orStreamCreate(&destroyed));
  ASSERT_OK(orStreamDestroy(destroyed));
  EXPECT_EQ(
      orLaunchKernel(
          destroyed, count_up, static_cast<void*>(&cleanups), count_up),
      orErrorInvalidHandle);
  EXPECT_EQ(cleanups, 0);
}

// Sanitizers cannot run without address space.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST(orLaunchKernel, WithoutAThreadIsUnknownAndKeepsTheArguments) {
#if defined(_WIN32)
  GTEST_SKIP() << "Windows does not limit the address space";
#else
  use_fresh_processes();
  EXPECT_EXIT(
      {
        const Stream stream;
        auto argument = std::make_shared<int>(1);
        std::ifstream file("/proc/self/statm");
        rlim_t pages = 0;
        file >> pages;
        rlimit limit;
        getrlimit(RLIMIT_AS, &limit);
        const rlim_t enough = limit.rlim_cur;
        // The limit leaves less than the stack of a thread.
        limit.rlim_cur = pages * static_cast<rlim_t>(sysconf(_SC_PAGESIZE)) +
            (rlim_t{1} << 20);
        setrlimit(RLIMIT_AS, &limit);
        EXPECT_EQ(orLaunchKernel(stream, [argument] {}), orErrorUnknown);
        EXPECT_MESSAGE("cannot start a thread for the stream");
        EXPECT_EQ(argument.use_count(), 1);
        limit.rlim_cur = enough;
        setrlimit(RLIMIT_AS, &limit);
        EXPECT_OK(orLaunchKernel(stream, [argument] {}));
        EXPECT_OK(orStreamSynchronize(stream));
        finish();
      },
      testing::ExitedWithCode(0),
      "^$");
#endif
}
#endif

TEST(orLaunchKernel, TakesMoveOnlyArguments) {
  const Stream stream;
  int result = 0;
  ASSERT_OK(orLaunchKernel(
      stream,
      [&result](std::unique_ptr<int> value) { result = *value; },
      std::make_unique<int>(42)));
  ASSERT_OK(orStreamSynchronize(stream));
  EXPECT_EQ(result, 42);
}

TEST(orLaunchKernel, NullKernelIsInvalidValue) {
  EXPECT_EQ(
      orLaunchKernel(nullptr, nullptr, nullptr, nullptr), orErrorInvalidValue);
}

TEST(orLaunchKernel, ManyThreadsOnOneStreamLoseNothing) {
  constexpr int kThreads = 8;
  constexpr int kLaunches = 500;
  const Stream stream;
  // Not atomic: commands run in order and see each other's writes.
  int count = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      for (int launch = 0; launch < kLaunches; ++launch) {
        EXPECT_OK(orLaunchKernel(stream, [&count] { ++count; }));
        if (launch % 50 == 0) {
          EXPECT_OK(orStreamSynchronize(stream));
        } else if (launch % 50 == 25) {
          EXPECT_OK(orLaunchKernelBlocking(
              stream, [](void* p) { ++*static_cast<int*>(p); }, &count));
        }
      }
    });
  }
  for (auto& thread : threads) {
    thread.join();
  }
  ASSERT_OK(orStreamSynchronize(stream));
  EXPECT_EQ(count, kThreads * (kLaunches + kLaunches / 50));
}

TEST(orLaunchKernel, KernelMayLaunchOnItsOwnStream) {
  const Stream stream;
  std::atomic<int> count{0};
  ASSERT_OK(orLaunchKernel(stream, [&] {
    EXPECT_OK(orLaunchKernel(stream, [&count] { ++count; }));
  }));
  ASSERT_OK(orStreamSynchronize(stream)); // the first one
  ASSERT_OK(orStreamSynchronize(stream)); // the kernel that it launched
  EXPECT_EQ(count, 1);
}

TEST(orLaunchKernel, KernelMayWaitForAnotherStream) {
  const Stream outer;
  const Stream inner;
  std::atomic<int> count{0};
  ASSERT_OK(orLaunchKernel(outer, [&] {
    EXPECT_OK(orLaunchKernel(inner, [&count] { ++count; }));
    EXPECT_OK(orStreamSynchronize(inner));
    EXPECT_EQ(count, 1);
  }));
  ASSERT_OK(orStreamSynchronize(outer));
}

TEST(orLaunchKernelBlocking, RunsOnTheCallingThread) {
  const Stream stream;
  std::thread::id ran;
  ASSERT_OK(orLaunchKernelBlocking(
      stream,
      [](void* p) {
        *static_cast<std::thread::id*>(p) = std::this_thread::get_id();
      },
      &ran));
  EXPECT_EQ(ran, std::this_thread::get_id());
}

TEST(orLaunchKernelBlocking, RunsAfterEnqueuedWork) {
  const Stream stream;
  std::vector<int> order;
  Latch latch(stream);
  ASSERT_OK(orLaunchKernel(stream, [&order] { order.push_back(1); }));
  std::thread releaser([&latch] { latch.release(); });
  ASSERT_OK(orLaunchKernelBlocking(
      stream,
      [](void* p) { static_cast<std::vector<int>*>(p)->push_back(2); },
      &order));
  releaser.join();
  EXPECT_EQ(order, (std::vector<int>{1, 2}));
}

TEST(orLaunchKernelBlocking, ThrowingKernelFailsTheCallOnly) {
  const Stream stream;
  EXPECT_EQ(
      orLaunchKernelBlocking(
          stream, [](void*) { throw std::runtime_error("broken"); }, nullptr),
      orErrorLaunchFailure);
  EXPECT_MESSAGE("broken");
  EXPECT_OK(orStreamSynchronize(stream));
}

TEST(orLaunchKernelBlocking, KernelMayLaunchBlockingOnItsOwnStream) {
  const Stream stream;
  std::atomic<int> count{0};
  ASSERT_OK(orLaunchKernel(stream, [&] {
    EXPECT_OK(orLaunchKernelBlocking(stream, count_up, &count));
    EXPECT_EQ(count, 1);
  }));
  ASSERT_OK(orStreamSynchronize(stream));
}

TEST(orLaunchHostFunc, RunsInTheOrderOfTheStream) {
  const Stream stream;
  std::vector<int> order;
  Latch latch(stream);
  ASSERT_OK(orLaunchKernel(stream, [&order] { order.push_back(1); }));
  ASSERT_OK(orLaunchHostFunc(
      stream,
      [](void* p) { static_cast<std::vector<int>*>(p)->push_back(2); },
      &order,
      nullptr));
  ASSERT_OK(orLaunchKernel(stream, [&order] { order.push_back(3); }));
  EXPECT_TRUE(order.empty());
  latch.release();
  ASSERT_OK(orStreamSynchronize(stream));
  EXPECT_EQ(order, (std::vector<int>{1, 2, 3}));
}

TEST(orLaunchHostFunc, ThrowingFunctionIsAFailureOfTheStream) {
  const Stream stream;
  ASSERT_OK(orLaunchHostFunc(
      stream,
      [](void*) { throw std::runtime_error("broken"); },
      nullptr,
      nullptr));
  EXPECT_EQ(orStreamSynchronize(stream), orErrorLaunchFailure);
  EXPECT_MESSAGE("broken");
}

TEST(orLaunchHostFunc, CleanupIsCalledAlsoIfTheFunctionIsDropped) {
  struct Seen {
    int ran = 0;
    int cleaned = 0;
  } seen;
  const Stream stream;
  const auto call_it = [&] {
    return orLaunchHostFunc(
        stream,
        [](void* p) { ++static_cast<Seen*>(p)->ran; },
        &seen,
        [](void* p) { ++static_cast<Seen*>(p)->cleaned; });
  };
  ASSERT_OK(call_it());
  ASSERT_OK(orStreamSynchronize(stream));
  ASSERT_OK(orLaunchKernel(stream, [] { throw std::runtime_error("broken"); }));
  ASSERT_OK(call_it());
  EXPECT_EQ(orStreamSynchronize(stream), orErrorLaunchFailure);
  EXPECT_EQ(seen.ran, 1);
  EXPECT_EQ(seen.cleaned, 2);
}

TEST(orLaunchHostFunc, MayLaunchButNotWait) {
  const Stream stream;
  orStream_t handle = stream;
  ASSERT_OK(orLaunchHostFunc(
      stream,
      [](void* p) {
        const orStream_t own = *static_cast<orStream_t*>(p);
        EXPECT_EQ(orStreamSynchronize(own), orErrorNotPermitted);
        EXPECT_OK(orLaunchKernel(own, [] {}));
      },
      &handle,
      nullptr));
  ASSERT_OK(orStreamSynchronize(stream));
}

TEST(orLaunchKernel, ThrowingCleanupIsAFailureOfTheStream) {
  const Stream stream;
  ASSERT_OK(orLaunchKernel(
      stream,
      [](void*) {},
      nullptr,
      [](void*) { throw std::runtime_error("not released"); }));
  EXPECT_EQ(orStreamSynchronize(stream), orErrorLaunchFailure);
  EXPECT_MESSAGE("the cleanup of a launch threw an exception: not released");
  EXPECT_OK(orStreamSynchronize(stream));
}

TEST(orLaunchKernel, FailureOfTheKernelCountsBeforeThatOfItsCleanup) {
  const Stream stream;
  ASSERT_OK(orLaunchKernel(
      stream,
      [](void*) { throw std::runtime_error("first"); },
      nullptr,
      [](void*) { throw 2; }));
  EXPECT_EQ(orStreamSynchronize(stream), orErrorLaunchFailure);
  EXPECT_MESSAGE("first");
}

} // namespace
