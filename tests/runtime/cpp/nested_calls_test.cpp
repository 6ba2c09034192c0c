// SPDX-License-Identifier: BSD-3-Clause
// Calls inside kernels keep the stream's order, device-wide waits include work
// launched by kernels, and kernels that wait for each other get an error.
#include "support.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <exception>
#include <thread>

namespace {

constexpr std::size_t kSize = 64;

/// Releases a kernel when a wait for it has probably begun. Releasing earlier
/// tests less, but does not fail.
void release_during_the_wait(Signal& released) {
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  released.set();
}

/// Runs `body` as a kernel of `stream` after an asynchronous call that sets the
/// block to 7; returns its result.
template <typename Body>
orError_t after_a_set(orStream_t stream, const Block& block, Body body) {
  orError_t result = orErrorUnknown;
  EXPECT_OK(orLaunchKernel(stream, [&] {
    EXPECT_OK(orMemsetAsync(block.get(), 7, kSize, stream));
    result = body();
  }));
  EXPECT_OK(orStreamSynchronize(stream));
  return result;
}

TEST(NestedCalls, CopyOfPageableMemoryAfterWorkOfTheKernelIsNotPermitted) {
  const Stream stream;
  const Block block(kSize);
  std::array<char, kSize> host{};
  EXPECT_EQ(
      after_a_set(
          stream,
          block,
          [&] {
            const orError_t error = orMemcpyAsync(
                host.data(), block.get(), kSize, orMemcpyDeviceToHost, stream);
            EXPECT_MESSAGE("has enqueued work on its own stream");
            return error;
          }),
      orErrorNotPermitted);
  // Accepted where the order is kept: before, and on pinned memory.
  const PinnedBlock pinned(kSize);
  ASSERT_OK(orLaunchKernel(stream, [&, handle = orStream_t(stream)] {
    EXPECT_OK(orMemcpyAsync(
        host.data(), block.get(), kSize, orMemcpyDeviceToHost, handle));
    EXPECT_OK(orMemsetAsync(block.get(), 8, kSize, handle));
    EXPECT_OK(orMemcpyAsync(
        pinned.get(), block.get(), kSize, orMemcpyDeviceToHost, handle));
  }));
  ASSERT_OK(orStreamSynchronize(stream));
  EXPECT_EQ(host[kSize - 1], 7);
  EXPECT_EQ(pinned.get()[kSize - 1], 8);
}

TEST(NestedCalls, SynchronousCopyAfterWorkOfTheKernelIsNotPermitted) {
  const Block block(kSize);
  std::array<char, kSize> host{};
  EXPECT_EQ(
      after_a_set(
          nullptr,
          block,
          [&] {
            return orMemcpy(
                host.data(), block.get(), kSize, orMemcpyDeviceToHost);
          }),
      orErrorNotPermitted);
}

TEST(NestedCalls, SynchronousSetAfterWorkOfTheKernelIsNotPermitted) {
  const Block block(kSize);
  EXPECT_EQ(
      after_a_set(
          nullptr, block, [&] { return orMemset(block.get(), 1, kSize); }),
      orErrorNotPermitted);
  std::array<char, kSize> host{};
  ASSERT_OK(orMemcpy(host.data(), block.get(), kSize, orMemcpyDeviceToHost));
  EXPECT_EQ(host[0], 7);
}

TEST(NestedCalls, CopyToAPeerAfterWorkOfTheKernelIsNotPermitted) {
  const Block source(kSize);
  void* target = nullptr;
  {
    const CurrentDevice device(1);
    ASSERT_OK(orMalloc(&target, kSize));
  }
  EXPECT_EQ(
      after_a_set(
          nullptr,
          source,
          [&] { return orMemcpyPeer(target, 1, source.get(), 0, kSize); }),
      orErrorNotPermitted);
  ASSERT_OK(orFree(target));
}

TEST(NestedCalls, BlockingLaunchAfterWorkOfTheKernelIsNotPermitted) {
  const Stream stream;
  const Block block(kSize);
  EXPECT_EQ(
      after_a_set(
          stream,
          block,
          [&] {
            return orLaunchKernelBlocking(stream, [](void*) {}, nullptr);
          }),
      orErrorNotPermitted);
  // An event is not work, and other threads' work does not belong to the
  // kernel.
  const Event event;
  ASSERT_OK(orLaunchKernel(stream, [&, handle = orStream_t(stream)] {
    EXPECT_OK(orEventRecord(event, handle));
    std::thread([&] {
      EXPECT_OK(orMemsetAsync(block.get(), 1, kSize, handle));
    }).join();
    EXPECT_OK(orLaunchKernelBlocking(handle, [](void*) {}, nullptr));
  }));
  ASSERT_OK(orStreamSynchronize(stream));
}

TEST(orStreamSynchronize, WaitsForWorkThatItsKernelsEnqueueThere) {
  const Stream stream;
  int ran = 0;
  Signal released;
  ASSERT_OK(orLaunchKernel(stream, [&, handle = orStream_t(stream)] {
    released.wait();
    EXPECT_OK(orLaunchKernel(handle, [&, handle] {
      EXPECT_OK(orLaunchKernel(handle, [&] { ++ran; }));
    }));
  }));
  std::thread host([&] {
    EXPECT_OK(orStreamSynchronize(stream));
    EXPECT_EQ(ran, 1);
  });
  release_during_the_wait(released);
  host.join();
}

TEST(orDeviceSynchronize, WaitsForKernelsLaunchedByARunningKernel) {
  const Stream late; // checked before the kernel launches on it
  const Stream stream;
  std::atomic<bool> ran{false};
  Signal started;
  Signal released;
  ASSERT_OK(orLaunchKernel(stream, [&, target = orStream_t(late)] {
    started.set();
    released.wait();
    EXPECT_OK(orLaunchKernel(target, [&, target] {
      EXPECT_OK(orLaunchKernel(target, [&] { ran = true; }));
    }));
  }));
  started.wait();
  ASSERT_OK(orDeviceSetLimit(orLimitWaitTimeout, 20));
  EXPECT_EQ(orDeviceSynchronize(), orErrorTimeout); // has checked all streams
  ASSERT_OK(orDeviceSetLimit(orLimitWaitTimeout, 0));
  std::thread host([&] {
    EXPECT_OK(orDeviceSynchronize());
    EXPECT_TRUE(ran);
  });
  release_during_the_wait(released);
  host.join();
}

TEST(orFree, WaitsForKernelsLaunchedByARunningKernel) {
  const Stream late;
  const Stream stream;
  void* pointer = nullptr;
  ASSERT_OK(orMalloc(&pointer, kSize));
  Signal released;
  ASSERT_OK(orLaunchKernel(stream, [&, target = orStream_t(late)] {
    released.wait();
    EXPECT_OK(orMemsetAsync(pointer, 1, kSize, target));
  }));
  std::thread host([&] { EXPECT_OK(orFree(pointer)); });
  release_during_the_wait(released);
  host.join();
  // All copies ran before their blocks were freed.
  EXPECT_OK(orDeviceSynchronize());
}

TEST(orFreeHost, WaitsForKernelsLaunchedOnAnotherDevice) {
  orStream_t other = nullptr;
  ASSERT_OK(orStreamGetDefault(&other, 1));
  void* pinned = nullptr;
  ASSERT_OK(orMallocHost(&pinned, kSize));
  std::atomic<bool> ran{false};
  Signal released;
  orStream_t first = nullptr;
  ASSERT_OK(orStreamGetDefault(&first, 0));
  ASSERT_OK(orLaunchKernel(other, [&] {
    released.wait();
    EXPECT_OK(orLaunchKernel(first, [&] {
      static_cast<char*>(pinned)[0] = 1;
      ran = true;
    }));
  }));
  std::thread host([&] {
    EXPECT_OK(orFreeHost(pinned));
    EXPECT_TRUE(ran);
  });
  release_during_the_wait(released);
  host.join();
}

/// Runs two kernels that call `wait` for each other's stream at the same time;
/// returns the results of both calls.
template <typename Wait>
std::array<orError_t, 2> wait_for_each_other(Wait wait) {
  const Stream first;
  const Stream second;
  const std::array<orStream_t, 2> streams{first, second};
  std::array<Signal, 2> started;
  std::array<orError_t, 2> results{};
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_OK(orLaunchKernel(streams[i], [&, i] {
      started[i].set();
      started[1 - i].wait();
      results[i] = wait(streams[1 - i]);
    }));
  }
  for (auto& signal : started) {
    signal.wait(); // a synchronization could run one of them on this thread
  }
  EXPECT_OK(orDeviceSynchronize());
  return results;
}

TEST(orStreamSynchronize, OfTwoKernelsThatWaitForEachOtherOneIsNotPermitted) {
  auto results = wait_for_each_other(
      [](orStream_t other) { return orStreamSynchronize(other); });
  std::sort(results.begin(), results.end());
  EXPECT_EQ(results[0], orSuccess);
  EXPECT_EQ(results[1], orErrorNotPermitted);
}

TEST(NestedCalls, OfTwoBlockingLaunchesThatWaitForEachOtherOneIsNotPermitted) {
  auto results = wait_for_each_other([](orStream_t other) {
    return orLaunchKernelBlocking(other, [](void*) {}, nullptr);
  });
  std::sort(results.begin(), results.end());
  EXPECT_EQ(results[0], orSuccess);
  EXPECT_EQ(results[1], orErrorNotPermitted);
}

TEST(orEventSynchronize, InAKernelThatItsStreamWaitsForIsNotPermitted) {
  // The other stream waits for the event of the kernel's stream, and the kernel
  // waits for an event that the other stream records afterwards.
  const Stream stream;
  const Stream other;
  const Event mine;
  const Event theirs;
  Signal recorded;
  orError_t result = orErrorUnknown;
  ASSERT_OK(orLaunchKernel(stream, [&] {
    recorded.wait();
    result = orEventSynchronize(theirs);
  }));
  ASSERT_OK(orEventRecord(mine, stream));
  ASSERT_OK(orStreamWaitEvent(other, mine, 0));
  ASSERT_OK(orEventRecord(theirs, other));
  recorded.set();
  ASSERT_OK(orEventSynchronize(theirs));
  EXPECT_EQ(result, orErrorNotPermitted);
}

TEST(orStreamSynchronize, InAKernelForAStreamThatHasWaitedForItsOwnSucceeds) {
  // The other stream's wait has ended before the kernel begins, but its thread
  // may not have woken up yet.
  for (int round = 0; round < 200; ++round) {
    const Stream stream;
    const Stream other;
    const Event before;
    orError_t result = orErrorUnknown;
    Signal done;
    ASSERT_OK(orLaunchKernel(stream, [] {
      std::this_thread::sleep_for(std::chrono::microseconds(200));
    }));
    ASSERT_OK(orEventRecord(before, stream));
    ASSERT_OK(orStreamWaitEvent(other, before, 0));
    ASSERT_OK(orLaunchKernel(other, [] {}));
    ASSERT_OK(orLaunchKernel(stream, [&, handle = orStream_t(other)] {
      result = orStreamSynchronize(handle);
      done.set();
    }));
    done.wait(); // each stream uses a separate worker
    ASSERT_EQ(result, orSuccess) << "in round " << round;
  }
}

TEST(NestedCalls, KernelWithinAKernelThatWaitsForTheOuterOneIsNotPermitted) {
  // A kernel of A runs a blocking kernel of B. That one waits for C, whose
  // kernel waits for A.
  const Stream a;
  const Stream b;
  const Stream c;
  struct Call {
    orStream_t c;
    Signal started;
    orError_t result = orErrorUnknown;
  } call;
  call.c = c;
  orError_t of_c = orErrorUnknown;
  ASSERT_OK(orLaunchKernel(c, [&, handle = orStream_t(a)] {
    call.started.wait();
    of_c = orStreamSynchronize(handle);
  }));
  ASSERT_OK(orLaunchKernel(a, [&, handle = orStream_t(b)] {
    EXPECT_OK(orLaunchKernelBlocking(
        handle,
        [](void* argument) {
          auto& call = *static_cast<Call*>(argument);
          call.started.set();
          call.result = orStreamSynchronize(call.c);
        },
        &call));
  }));
  call.started.wait();
  ASSERT_OK(orDeviceSynchronize());
  EXPECT_EQ(
      (call.result == orErrorNotPermitted) + (of_c == orErrorNotPermitted), 1);
}

TEST(NestedCalls, WorkOfAKernelThatAWaitRunsIsNotWorkOfTheWaitingKernel) {
  // For both threads that may run B's kernel: a worker, or the waiting thread.
  for (int round = 0; round < 100; ++round) {
    const Stream a;
    const Stream b;
    orError_t result = orErrorUnknown;
    ASSERT_OK(
        orLaunchKernel(a, [&, outer = orStream_t(a), inner = orStream_t(b)] {
          EXPECT_OK(orLaunchKernel(
              inner, [outer] { EXPECT_OK(orLaunchKernel(outer, [] {})); }));
          EXPECT_OK(orStreamSynchronize(inner));
          result = orLaunchKernelBlocking(outer, [](void*) {}, nullptr);
        }));
    ASSERT_OK(orStreamSynchronize(a));
    ASSERT_EQ(result, orSuccess) << "in round " << round;
  }
}

TEST(orStreamSynchronize, InAKernelOfAChainThatEndsSucceeds) {
  const std::array<Stream, 4> streams;
  std::array<orError_t, 3> results{};
  Latch latch(streams[3]);
  for (std::size_t i = 0; i < 3; ++i) {
    ASSERT_OK(orLaunchKernel(streams[i], [&, i] {
      results[i] = orStreamSynchronize(streams[i + 1]);
    }));
  }
  latch.release();
  ASSERT_OK(orDeviceSynchronize());
  EXPECT_EQ(results, (std::array<orError_t, 3>{}));
}

TEST(orLaunchKernel, ExceptionWithoutTextIsAFailureToo) {
  struct Silent : std::exception {
    const char* what() const noexcept override {
      return nullptr;
    }
  };
  const Stream stream;
  ASSERT_OK(orLaunchKernel(stream, [] { throw Silent(); }));
  EXPECT_EQ(orStreamSynchronize(stream), orErrorLaunchFailure);
  EXPECT_MESSAGE("a kernel threw an exception: (no text)");
}

} // namespace
