// SPDX-License-Identifier: BSD-3-Clause
// Threads of a program that uses devices: signals, cancellation, the end of the
// main thread, process limits.
#include "support.h"

#include <array>
#include <csignal>
#include <pthread.h>
#include <string_view>
#include <sys/resource.h>
#if !defined(__APPLE__)
#include <ucontext.h>
#endif

namespace {

using Threads = FreshProcess;
using Limits = FreshProcess;

TEST_F(Threads, SignalsGoToTheThreadsOfTheProgram) {
  EXPECT_EXIT(
      {
        const Stream stream;
        const Latch latch(stream); // its worker runs, and could be interrupted
        sigset_t signals;
        sigemptyset(&signals);
        sigaddset(&signals, SIGTERM);
        pthread_sigmask(SIG_BLOCK, &signals, nullptr);
        kill(getpid(), SIGTERM);
        alarm(10); // ends the process if the signal is lost
        int signal = 0;
        std::_Exit(
            sigwait(&signals, &signal) == 0 && signal == SIGTERM ? 0 : 1);
      },
      testing::ExitedWithCode(0),
      "");
}

TEST_F(Threads, SignalMaskOfTheEnqueuingThreadIsUnchanged) {
  sigset_t before;
  sigset_t after;
  pthread_sigmask(SIG_SETMASK, nullptr, &before);
  const Stream stream;
  ASSERT_OK(orLaunchKernel(stream, [] {}));
  pthread_sigmask(SIG_SETMASK, nullptr, &after);
  for (int signal = 1; signal < NSIG; ++signal) {
    EXPECT_EQ(sigismember(&before, signal), sigismember(&after, signal));
  }
  ASSERT_OK(orStreamSynchronize(stream));
}

// AddressSanitizer mistakes the frames of a cancelled thread for an overflow.
#if defined(__SANITIZE_ADDRESS__)
#define CANCELS_A_THREAD() GTEST_SKIP() << "AddressSanitizer loses the stack"
#else
#define CANCELS_A_THREAD() static_cast<void>(0)
#endif

/// Calls `wait`, which `release` ends, on an already cancelled thread; returns
/// whether the cancellation came after the wait.
template <typename Wait, typename Release>
bool is_cancelled_after(Wait wait, Release release) {
  struct Call {
    Wait wait;
    Signal started;
    bool returned = false;
  } call{wait, {}, false};
  pthread_t thread{};
  EXPECT_EQ(
      pthread_create(
          &thread,
          nullptr,
          [](void* argument) -> void* {
            auto& call = *static_cast<Call*>(argument);
            pthread_cancel(pthread_self());
            call.started.set();
            call.wait();
            call.returned = true;
            pthread_testcancel();
            return nullptr;
          },
          &call),
      0);
  call.started.wait();
  std::this_thread::sleep_for(
      std::chrono::milliseconds(5)); // otherwise it rarely waits
  release();
  void* result = nullptr;
  EXPECT_EQ(pthread_join(thread, &result), 0);
  return call.returned && result == PTHREAD_CANCELED;
}

TEST(orStreamSynchronize, IsNotACancellationPoint) {
  CANCELS_A_THREAD();
  const Stream stream;
  Latch latch(stream);
  EXPECT_TRUE(is_cancelled_after(
      [&] { EXPECT_OK(orStreamSynchronize(stream)); },
      [&] { latch.release(); }));
}

TEST(orStreamSynchronize, ThatRunsAKernelIsNotACancellationPoint) {
  CANCELS_A_THREAD();
  const Stream stream;
  Latch latch(stream);
  int ran = 0;
  ASSERT_OK(orLaunchKernel(stream, [&] {
    pthread_testcancel(); // on the waiting thread or the worker
    ++ran;
  }));
  EXPECT_TRUE(is_cancelled_after(
      [&] { EXPECT_OK(orStreamSynchronize(stream)); },
      [&] { latch.release(); }));
  EXPECT_EQ(ran, 1);
}

TEST(orEventSynchronize, IsNotACancellationPoint) {
  CANCELS_A_THREAD();
  const Stream stream;
  const Event event;
  Latch latch(stream);
  ASSERT_OK(orEventRecord(event, stream));
  EXPECT_TRUE(is_cancelled_after(
      [&] { EXPECT_OK(orEventSynchronize(event)); }, [&] { latch.release(); }));
}

/// On a separate stack, so that no frame of the test catches the unwinding.
[[noreturn]] void end_this_thread() {
#if defined(__APPLE__)
  pthread_exit(nullptr); // unwinds no stack
#else
  static std::array<char, std::size_t{1} << 16> stack;
  static ucontext_t context;
  getcontext(&context);
  context.uc_stack.ss_sp = stack.data();
  context.uc_stack.ss_size = stack.size();
  makecontext(&context, [] { pthread_exit(nullptr); }, 0);
  setcontext(&context);
  std::abort();
#endif
}

/// The same for a call that does not wait.
template <typename Body>
bool returns_to_a_cancelled_thread(Body body) {
  return is_cancelled_after(body, [] {});
}

TEST_F(Threads, FirstUseIsNotACancellationPoint) {
  CANCELS_A_THREAD();
  EXPECT_EXIT(
      std::_Exit(
          returns_to_a_cancelled_thread([] { EXPECT_OK(orInit()); }) ? 0 : 1),
      testing::ExitedWithCode(0),
      "");
}

TEST(orIpcGetMemHandle, IsNotACancellationPoint) {
  CANCELS_A_THREAD();
  void* block = nullptr;
  ASSERT_OK(orMalloc(&block, 64));
  orIpcMemHandle_t handle;
  EXPECT_TRUE(returns_to_a_cancelled_thread(
      [&] { EXPECT_OK(orIpcGetMemHandle(&handle, block)); }));
  ASSERT_OK(orFree(block));
}

TEST_F(Threads, ProcessEndsAfterItsMainThread) {
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "the sanitizers do not know stacks of ucontext.h";
#endif
  EXPECT_EXIT(
      {
        const Stream stream;
        EXPECT_OK(orLaunchKernel(stream, [] {}));
        EXPECT_OK(orLaunchKernel(nullptr, [] {}));
        EXPECT_OK(orDeviceSynchronize());
        alarm(20); // ends the process if a wait hangs
        end_this_thread();
      },
      testing::ExitedWithCode(0),
      "");
}

TEST(orLaunchKernel, AfterTheWorkerWasIdleForLongStartsAnother) {
  const Stream stream;
  const auto threads = [] {
    orResourceUsage usage = OPENREG_RESOURCE_USAGE_INIT;
    EXPECT_OK(orGetResourceUsage(&usage));
    return usage.threads;
  };
  ASSERT_OK(orLaunchKernel(stream, [] {}));
  ASSERT_OK(orStreamSynchronize(stream));
  const auto limit =
      std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (threads() > 0) { // including workers of default streams
    ASSERT_LT(std::chrono::steady_clock::now(), limit);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  std::thread::id thread;
  Signal done;
  ASSERT_OK(orLaunchKernel(stream, [&] {
    thread = std::this_thread::get_id();
    done.set();
  }));
  done.wait();
  EXPECT_NE(thread, std::this_thread::get_id());
}

template <typename Resource>
void set_limit(Resource resource, rlim_t value) {
  const rlimit limit{value, value};
  EXPECT_EQ(setrlimit(resource, &limit), 0);
}

TEST_F(Limits, FileSizeBelowTheMemoryIsMemoryAllocation) {
  EXPECT_EXIT(
      {
        set_limit(RLIMIT_FSIZE, 1 << 20);
        report(orInit(), orErrorMemoryAllocation);
      },
      testing::ExitedWithCode(0),
      "the file size limit .RLIMIT_FSIZE, ulimit -f. is 1048576: raise the "
      "limit");
}

TEST_F(Limits, FileSizeBelowTheMemoryAndItsRoomEndsNoProcess) {
  EXPECT_EXIT(
      {
        setenv("OPENREG_DEVICE_MEMORY", "1MiB", 1);
        set_limit(RLIMIT_FSIZE, 2 << 20);
        // Linux adds the room to a file later.
        const bool fits = std::string_view(OPENREG_PLATFORM) == "linux";
        report(orInit(), fits ? orSuccess : orErrorMemoryAllocation);
      },
      testing::ExitedWithCode(0),
      "orSuccess|is 2097152: raise the limit");
}

TEST_F(Limits, NoFileLeftNamesTheLimitOfOpenFiles) {
  EXPECT_EXIT(
      {
        set_limit(RLIMIT_NOFILE, 3);
        report(orInit(), orErrorMemoryAllocation);
      },
      testing::ExitedWithCode(0),
      "raise the open file limit .ulimit -n.");
}

} // namespace
