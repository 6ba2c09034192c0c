// SPDX-License-Identifier: BSD-3-Clause
// Streams: order, queries, waiting, handles, priorities.
#include "support.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <memory>
#include <thread>

namespace {

TEST(orStreamQuery, ReadyWhenNothingWasEnqueued) {
  const Stream stream;
  EXPECT_EQ(orStreamQuery(stream), orSuccess);
}

TEST(orStreamQuery, NotReadyWhileKernelRuns) {
  const Stream stream;
  Latch latch(stream);
  EXPECT_EQ(orStreamQuery(stream), orErrorNotReady);
  latch.release();
  ASSERT_OK(orStreamSynchronize(stream));
  EXPECT_EQ(orStreamQuery(stream), orSuccess);
}

TEST(orStreamQuery, NotReadyIsNotAFailure) {
  static_cast<void>(orGetLastError());
  const Stream stream;
  const Latch latch(stream);
  ASSERT_EQ(orStreamQuery(stream), orErrorNotReady);
  EXPECT_EQ(orPeekAtLastError(), orSuccess);
}

TEST(orStreamQuery, FailurePersists) {
  const Stream stream;
  const Event event;
  ASSERT_OK(orLaunchKernel(stream, [] { throw std::runtime_error("broken"); }));
  ASSERT_OK(orEventRecord(event, stream));
  ASSERT_EQ(orEventSynchronize(event), orErrorLaunchFailure);
  EXPECT_EQ(orStreamQuery(stream), orErrorLaunchFailure);
  EXPECT_EQ(orStreamQuery(stream), orErrorLaunchFailure);
  EXPECT_EQ(orStreamSynchronize(stream), orErrorLaunchFailure);
  EXPECT_EQ(orStreamQuery(stream), orSuccess);
}

TEST(orStreamQuery, NotReadyHasATextOfItsOwnUntilTheNextFailure) {
  EXPECT_EQ(orMalloc(nullptr, 1), orErrorInvalidValue);
  const Stream stream;
  const Latch latch(stream);
  ASSERT_EQ(orStreamQuery(stream), orErrorNotReady);
  EXPECT_MESSAGE("orStreamQuery: work of the stream is still queued");
  EXPECT_EQ(orPeekAtLastError(), orErrorInvalidValue);
  EXPECT_EQ(orMalloc(nullptr, 1), orErrorInvalidValue);
  EXPECT_MESSAGE("devPtr must not be null");
  static_cast<void>(orGetLastError());
}

TEST(orStreamQuery, HandleOfAnEventIsInvalidHandle) {
  const Event event;
  EXPECT_EQ(
      orStreamQuery(reinterpret_cast<orStream_t>(orEvent_t(event))),
      orErrorInvalidHandle);
  EXPECT_MESSAGE("looks like the one of an event, not of a stream");
}

TEST(orStreamQuery, DestroyedStreamIsInvalidHandle) {
  orStream_t stream = nullptr;
  ASSERT_OK(orStreamCreate(&stream));
  ASSERT_OK(orStreamDestroy(stream));
  EXPECT_EQ(orStreamQuery(stream), orErrorInvalidHandle);
  EXPECT_MESSAGE("was destroyed, or never created");
}

TEST(orStreamQuery, ForeignHandleIsInvalidHandle) {
  int object = 0;
  EXPECT_EQ(
      orStreamQuery(reinterpret_cast<orStream_t>(&object)),
      orErrorInvalidHandle);
}

TEST(orStreamGetProgress, CountsEnqueuedAndCompleted) {
  const Stream stream;
  uint64_t before = 0;
  uint64_t enqueued = 0;
  uint64_t completed = 0;
  ASSERT_OK(orStreamGetProgress(stream, &before, &completed));
  EXPECT_EQ(completed, before);
  Latch latch(stream);
  ASSERT_OK(orLaunchKernel(stream, [] {}));
  ASSERT_OK(orStreamGetProgress(stream, &enqueued, &completed));
  EXPECT_EQ(enqueued, before + 2);
  EXPECT_EQ(completed, before);
  latch.release();
  ASSERT_OK(orStreamSynchronize(stream));
  ASSERT_OK(orStreamGetProgress(stream, &enqueued, &completed));
  EXPECT_EQ(completed, before + 2);
}

TEST(orStreamGetProgress, KernelSeesItselfAsNotCompleted) {
  const Stream stream;
  uint64_t before = 0;
  uint64_t enqueued = 0;
  uint64_t completed = 0;
  ASSERT_OK(orStreamGetProgress(stream, &before, &completed));
  ASSERT_OK(orLaunchKernel(stream, [&, handle = orStream_t(stream)] {
    EXPECT_OK(orStreamGetProgress(handle, &enqueued, &completed));
  }));
  ASSERT_OK(orStreamSynchronize(stream));
  EXPECT_EQ(enqueued, before + 1);
  EXPECT_EQ(completed, before);
}

TEST(orStreamGetProgress, NeverExceedsAnEventThatIsNotReady) {
  const Stream stream;
  const Event event;
  for (int round = 0; round < 20'000; ++round) {
    ASSERT_OK(orLaunchKernel(stream, [] {}));
    ASSERT_OK(orEventRecord(event, stream));
    uint64_t enqueued = 0;
    uint64_t completed = 0;
    do {
      ASSERT_OK(orStreamGetProgress(stream, &enqueued, &completed));
    } while (completed < enqueued);
    ASSERT_EQ(orEventQuery(event), orSuccess) << "in round " << round;
  }
}

TEST(orDeviceGetEnqueueCounter, CountsEnqueuedCommands) {
  const Stream stream;
  const Event event;
  const uint64_t* counter = nullptr;
  ASSERT_OK(orDeviceGetEnqueueCounter(&counter, 0));
  const auto count = [&] { return __atomic_load_n(counter, __ATOMIC_ACQUIRE); };
  const uint64_t before = count();
  ASSERT_OK(orLaunchKernelBlocking(stream, [](void*) {}, nullptr));
  EXPECT_EQ(count(), before + 1);
  {
    const Latch latch(stream);
    EXPECT_EQ(count(), before + 2);
    ASSERT_OK(orLaunchKernel(stream, [] {}));
    ASSERT_OK(orEventRecord(event, stream));
    EXPECT_EQ(count(), before + 4);
  }
  ASSERT_OK(orStreamSynchronize(stream));
  EXPECT_EQ(count(), before + 4);
}

TEST(orDeviceGetEnqueueCounter, RejectsDevicesThatAreNotThere) {
  const uint64_t* counter = nullptr;
  EXPECT_EQ(orDeviceGetEnqueueCounter(&counter, 99), orErrorInvalidDevice);
}

TEST(FullStream, MakesALaunchWaitForRoom) {
  const Stream stream;
  const Event full;
  constexpr int kMore = 16384 + 1000;
  auto latch = std::make_unique<Latch>(stream);
  std::atomic<int> launched{0};
  std::thread host([&, handle = orStream_t(stream)] {
    for (int i = 0; i < kMore; ++i) {
      EXPECT_OK(orLaunchKernel(handle, [] {}));
      ++launched;
    }
  });
  // Records and waits do not block, so no call blocks while it holds a lock.
  uint64_t enqueued = 0;
  uint64_t completed = 0;
  while (launched < 16384) {
    std::this_thread::yield();
  }
  ASSERT_OK(orStreamGetProgress(stream, &enqueued, &completed));
  EXPECT_EQ(enqueued - completed, 16384u + 1); // plus the blocking kernel
  EXPECT_OK(orEventRecord(full, stream));
  latch.reset();
  host.join();
  EXPECT_EQ(launched, kMore);
  ASSERT_OK(orStreamSynchronize(stream));
}

TEST(FullStream, IsTimeoutIfWaitsHaveALimit) {
  const Stream stream;
  const Latch latch(stream);
  for (int i = 0; i < 16384; ++i) {
    ASSERT_OK(orLaunchKernel(stream, [] {}));
  }
  ASSERT_OK(orDeviceSetLimit(orLimitWaitTimeout, 20));
  EXPECT_EQ(orLaunchKernel(stream, [] {}), orErrorTimeout);
  EXPECT_MESSAGE("still holds 16384 commands");
  EXPECT_EQ(
      orLaunchHostFunc(stream, [](void*) {}, nullptr, nullptr), orErrorTimeout);
  ASSERT_OK(orDeviceSetLimit(orLimitWaitTimeout, 0));
}

TEST(orStreamRunsHere, IsTrueOnlyInKernelsOfTheStream) {
  const Stream stream;
  const Stream other;
  int outside = -1;
  std::array<int, 4> inside{};
  ASSERT_OK(orStreamRunsHere(stream, &outside));
  EXPECT_EQ(outside, 0);
  ASSERT_OK(orLaunchKernel(
      stream, [&, outer = orStream_t(stream), inner = orStream_t(other)] {
        EXPECT_OK(orStreamRunsHere(outer, &inside[0]));
        EXPECT_OK(orStreamRunsHere(inner, &inside[1]));
        // A nested kernel belongs to both streams.
        auto nested = [&] {
          EXPECT_OK(orStreamRunsHere(outer, &inside[2]));
          EXPECT_OK(orStreamRunsHere(inner, &inside[3]));
        };
        EXPECT_OK(orLaunchKernelBlocking(
            inner,
            [](void* args) { (*static_cast<decltype(nested)*>(args))(); },
            &nested));
      }));
  ASSERT_OK(orStreamSynchronize(stream));
  EXPECT_EQ(inside, (std::array<int, 4>{1, 0, 1, 1}));
}

TEST(orStreamSynchronize, RunsCommandsInOrder) {
  const Stream stream;
  std::vector<int> order;
  for (int i = 0; i < 100; ++i) {
    ASSERT_OK(orLaunchKernel(stream, [&order, i] { order.push_back(i); }));
  }
  ASSERT_OK(orStreamSynchronize(stream));
  ASSERT_EQ(order.size(), 100u);
  EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
}

TEST(orStreamSynchronize, DoesNotWaitForOtherStreams) {
  const Stream held;
  const Stream stream;
  const Latch latch(held);
  bool ran = false;
  ASSERT_OK(orLaunchKernel(stream, [&ran] { ran = true; }));
  ASSERT_OK(orStreamSynchronize(stream));
  EXPECT_TRUE(ran);
  EXPECT_EQ(orStreamQuery(held), orErrorNotReady);
}

TEST(orStreamSynchronize, SeveralThreadsMayWait) {
  const Stream stream;
  Latch latch(stream);
  std::atomic<int> returned{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      EXPECT_OK(orStreamSynchronize(stream));
      ++returned;
    });
  }
  EXPECT_EQ(returned, 0);
  latch.release();
  for (auto& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(returned, 4);
}

TEST(orStreamSynchronize, InItsOwnKernelIsNotPermitted) {
  const Stream stream;
  ASSERT_OK(orLaunchKernel(stream, [&stream] {
    EXPECT_EQ(orStreamSynchronize(stream), orErrorNotPermitted);
  }));
  ASSERT_OK(orStreamSynchronize(stream));
}

TEST(orStreamSynchronize, InItsOwnCleanupIsNotPermitted) {
  struct Args {
    orStream_t stream;
    orError_t error;
  };
  const Stream stream;
  Args args{stream, orSuccess};
  ASSERT_OK(orLaunchKernel(
      stream,
      [](void*) {},
      static_cast<void*>(&args),
      [](void* p) {
        auto* self = static_cast<Args*>(p);
        self->error = orStreamSynchronize(self->stream);
      }));
  ASSERT_OK(orStreamSynchronize(stream));
  EXPECT_EQ(args.error, orErrorNotPermitted);
}

TEST(orStreamDestroy, PendingWorkStillRuns) {
  orStream_t stream = nullptr;
  ASSERT_OK(orStreamCreate(&stream));
  auto done = std::make_shared<Signal>();
  {
    const Latch latch(stream);
    ASSERT_OK(orLaunchKernel(stream, [done] { done->set(); }));
    ASSERT_OK(orStreamDestroy(stream));
    EXPECT_EQ(orStreamSynchronize(stream), orErrorInvalidHandle);
  }
  done->wait();
}

TEST(orStreamDestroy, TwiceIsInvalidHandle) {
  orStream_t stream = nullptr;
  ASSERT_OK(orStreamCreate(&stream));
  ASSERT_OK(orStreamDestroy(stream));
  EXPECT_EQ(orStreamDestroy(stream), orErrorInvalidHandle);
}

TEST(orStreamDestroy, OldHandleNeverNamesANewStream) {
  orStream_t old = nullptr;
  ASSERT_OK(orStreamCreate(&old));
  ASSERT_OK(orStreamDestroy(old));
  const Stream recycled;
  EXPECT_EQ(orStreamQuery(old), orErrorInvalidHandle);
}

TEST(orStreamDestroy, FailureOfARecycledStreamIsNotInherited) {
  for (int i = 0; i < 20; ++i) {
    const Stream stream;
    ASSERT_OK(orStreamQuery(stream));
    ASSERT_OK(
        orLaunchKernel(stream, [] { throw std::runtime_error("broken"); }));
    ASSERT_EQ(orStreamSynchronize(stream), orErrorLaunchFailure);
  }
}

TEST(orStreamDestroy, DefaultStreamIsInvalidHandle) {
  orStream_t stream = nullptr;
  ASSERT_OK(orStreamGetDefault(&stream, 0));
  EXPECT_EQ(orStreamDestroy(stream), orErrorInvalidHandle);
  EXPECT_EQ(orStreamDestroy(nullptr), orErrorInvalidHandle);
  EXPECT_OK(orStreamQuery(stream));
}

TEST(orStreamGetDefault, IsTheNullStreamOfTheDevice) {
  const CurrentDevice current(1);
  orStream_t stream = nullptr;
  ASSERT_OK(orStreamGetDefault(&stream, 1));
  Latch latch(stream);
  EXPECT_EQ(orStreamQuery(nullptr), orErrorNotReady);
  latch.release();
  ASSERT_OK(orStreamSynchronize(nullptr));
}

TEST(orStreamGetDefault, PastTheCountIsInvalidDevice) {
  orStream_t stream = nullptr;
  EXPECT_EQ(orStreamGetDefault(&stream, 2), orErrorInvalidDevice);
}

TEST(orStreamGetDevice, IsTheCurrentOneAtCreation) {
  const CurrentDevice current(1);
  const Stream stream;
  const CurrentDevice other(0);
  int device = 0;
  ASSERT_OK(orStreamGetDevice(stream, &device));
  EXPECT_EQ(device, 1);
}

TEST(orDeviceGetStreamPriorityRange, GreatestIsTheSmallerNumber) {
  int least = -1;
  int greatest = 0;
  ASSERT_OK(orDeviceGetStreamPriorityRange(&least, &greatest));
  EXPECT_EQ(least, 0);
  EXPECT_LT(greatest, least);
}

TEST(orStreamGetPriority, IsTheOneItWasMadeWith) {
  const Stream stream(-2);
  int priority = 0;
  ASSERT_OK(orStreamGetPriority(stream, &priority));
  EXPECT_EQ(priority, -2);
  ASSERT_OK(orStreamGetPriority(nullptr, &priority));
  EXPECT_EQ(priority, 0);
}

TEST(orStreamCreateWithPriority, TakesBothFlags) {
  for (const unsigned int flags : {orStreamDefault, orStreamNonBlocking}) {
    orStream_t stream = nullptr;
    ASSERT_OK(orStreamCreateWithPriority(&stream, flags, 0));
    EXPECT_OK(orStreamQuery(stream));
    EXPECT_OK(orStreamDestroy(stream));
  }
}

TEST(orStreamCreateWithPriority, ClampsThePriority) {
  int least = 0;
  int greatest = 0;
  ASSERT_OK(orDeviceGetStreamPriorityRange(&least, &greatest));
  const Stream low(1000);
  const Stream high(-1000);
  int priority = 1;
  ASSERT_OK(orStreamGetPriority(low, &priority));
  EXPECT_EQ(priority, least);
  ASSERT_OK(orStreamGetPriority(high, &priority));
  EXPECT_EQ(priority, greatest);
}

TEST(orStreamCreateWithPriority, UnknownFlagsAreInvalidValue) {
  orStream_t stream = nullptr;
  EXPECT_EQ(orStreamCreateWithPriority(&stream, 8, 0), orErrorInvalidValue);
  EXPECT_MESSAGE("flags 8");
}

TEST(orStreamCreate, MakesAnIdleStreamOfTheCurrentDevice) {
  const CurrentDevice current(1);
  orStream_t stream = nullptr;
  ASSERT_OK(orStreamCreate(&stream));
  EXPECT_NE(stream, nullptr);
  EXPECT_OK(orStreamQuery(stream));
  int device = 0;
  EXPECT_OK(orStreamGetDevice(stream, &device));
  EXPECT_EQ(device, 1);
  EXPECT_OK(orStreamDestroy(stream));
}

TEST(orStreamCreate, NullIsInvalidValue) {
  EXPECT_EQ(orStreamCreate(nullptr), orErrorInvalidValue);
}

TEST(orStreamCreate, EndsItsWorkersWithTheStreams) {
  // Destroyed streams are reused, so this needs few threads instead of 2000.
  for (int i = 0; i < 2000; ++i) {
    const Stream stream;
    ASSERT_OK(orLaunchKernel(stream, [] {}));
    ASSERT_OK(orStreamSynchronize(stream));
  }
}

/// Keeps a stream busy: each kernel launches the next, until the scope ends.
class EndlessWork {
 public:
  explicit EndlessWork(orStream_t stream) : stream_(stream) {
    EXPECT_OK(orLaunchKernel(stream_, next, this, nullptr));
  }
  EndlessWork(const EndlessWork&) = delete;
  EndlessWork& operator=(const EndlessWork&) = delete;
  ~EndlessWork() {
    stop_ = true;
    EXPECT_OK(orStreamSynchronize(stream_));
    ended_.wait();
  }

 private:
  static void next(void* self) {
    auto& work = *static_cast<EndlessWork*>(self);
    if (work.stop_) {
      work.ended_.set();
    } else {
      EXPECT_OK(orLaunchKernel(work.stream_, next, self, nullptr));
    }
  }

  const orStream_t stream_;
  std::atomic<bool> stop_{false};
  Signal ended_;
};

TEST(orMemcpy, DoesNotWaitForLaterWork) {
  const Block block(64);
  const char host[64] = {};
  const EndlessWork work(nullptr);
  for (int i = 0; i < 20; ++i) {
    EXPECT_OK(orMemcpy(block.get(), host, 64, orMemcpyHostToDevice));
  }
}

TEST(orLaunchKernelBlocking, DoesNotWaitForLaterWork) {
  const Stream stream;
  const EndlessWork work(stream);
  for (int i = 0; i < 20; ++i) {
    EXPECT_OK(orLaunchKernelBlocking(stream, [](void*) {}, nullptr));
  }
}

TEST(orLaunchKernelBlocking, TimeoutLeavesTheOrderOfTheRest) {
  const Stream stream;
  std::string order;
  {
    Latch latch(stream);
    ASSERT_OK(orLaunchKernel(stream, [&order] { order += '1'; }));
    ASSERT_OK(orDeviceSetLimit(orLimitWaitTimeout, 1));
    EXPECT_EQ(
        orLaunchKernelBlocking(
            stream,
            [](void* p) { static_cast<std::string*>(p)->push_back('x'); },
            &order),
        orErrorTimeout);
    EXPECT_MESSAGE("still has 2 pending commands after 1 ms");
    ASSERT_OK(orDeviceSetLimit(orLimitWaitTimeout, 0));
    ASSERT_OK(orLaunchKernel(stream, [&order] { order += '2'; }));
  }
  EXPECT_OK(orStreamSynchronize(stream));
  EXPECT_EQ(order, "12");
}

TEST(orStreamDestroy, LeavesAFailureForTheDeviceAlsoIfTheStreamIsMadeAgain) {
  for (int round = 0; round < 20; ++round) {
    orStream_t failing = nullptr;
    ASSERT_OK(orStreamCreate(&failing));
    ASSERT_OK(
        orLaunchKernel(failing, [] { throw std::runtime_error("broken"); }));
    while (orStreamQuery(failing) == orErrorNotReady) {
      std::this_thread::yield();
    }
    ASSERT_OK(orStreamDestroy(failing));
    const Stream others[3];
    for (const auto& other : others) {
      EXPECT_OK(orStreamSynchronize(other)) << "another stream's failure";
    }
    EXPECT_EQ(orDeviceSynchronize(), orErrorLaunchFailure);
    EXPECT_MESSAGE("broken");
    EXPECT_OK(orDeviceSynchronize());
  }
}

TEST(orStreamDestroy, OfSeveralThatFailedTheFirstCounts) {
  for (int i = 0; i < 3; ++i) {
    const Stream stream;
    ASSERT_OK(
        orLaunchKernel(stream, [] { throw std::runtime_error("broken"); }));
  }
  int failures = 0;
  while (orDeviceSynchronize() == orErrorLaunchFailure) {
    ++failures;
  }
  EXPECT_GE(failures, 1);
  EXPECT_LE(failures, 3) << "those whose thread had not ended yet";
}

} // namespace
