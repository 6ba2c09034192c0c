// SPDX-License-Identifier: BSD-3-Clause
// Events: records, waits across streams, elapsed time, handles.
#include "support.h"

#include <atomic>
#include <thread>

namespace {

TEST(orEventQuery, ReadyWhenNeverRecorded) {
  const Event event;
  EXPECT_EQ(orEventQuery(event), orSuccess);
  EXPECT_OK(orEventSynchronize(event));
}

TEST(orEventQuery, NotReadyUntilTheStreamGetsThere) {
  const Stream stream;
  const Event event;
  Latch latch(stream);
  ASSERT_OK(orEventRecord(event, stream));
  EXPECT_EQ(orEventQuery(event), orErrorNotReady);
  latch.release();
  ASSERT_OK(orEventSynchronize(event));
  EXPECT_EQ(orEventQuery(event), orSuccess);
}

TEST(orEventSynchronize, WaitsForTheWorkBeforeTheRecordOnly) {
  const Stream stream;
  const Event event;
  std::atomic<bool> ran{false};
  Latch latch(stream);
  ASSERT_OK(orLaunchKernel(stream, [&ran] { ran = true; }));
  ASSERT_OK(orEventRecord(event, stream));
  Signal released;
  ASSERT_OK(orLaunchKernel(stream, [&released] { released.wait(); }));
  latch.release();
  ASSERT_OK(orEventSynchronize(event));
  EXPECT_TRUE(ran);
  EXPECT_EQ(orStreamQuery(stream), orErrorNotReady);
  released.set();
  ASSERT_OK(orStreamSynchronize(stream));
}

TEST(orEventSynchronize, BehindItsOwnKernelIsNotPermitted) {
  const Stream stream;
  const Event event;
  Signal recorded;
  ASSERT_OK(orLaunchKernel(stream, [&] {
    recorded.wait();
    EXPECT_EQ(orEventSynchronize(event), orErrorNotPermitted);
  }));
  ASSERT_OK(orEventRecord(event, stream));
  recorded.set();
  ASSERT_OK(orStreamSynchronize(stream));
}

TEST(orEventSynchronize, ReportsTheFailureOfAKernelBeforeIt) {
  const Stream stream;
  const Event event;
  ASSERT_OK(orLaunchKernel(stream, [] { throw std::runtime_error("broken"); }));
  ASSERT_OK(orEventRecord(event, stream));
  for (int call = 0; call < 2; ++call) {
    EXPECT_EQ(orEventSynchronize(event), orErrorLaunchFailure);
    EXPECT_MESSAGE("broken");
    EXPECT_EQ(orEventQuery(event), orErrorLaunchFailure);
  }
  EXPECT_EQ(orStreamSynchronize(stream), orErrorLaunchFailure);
  ASSERT_OK(orEventRecord(event, stream));
  EXPECT_OK(orEventSynchronize(event)) << "a record after the report is good";
}

TEST(orEventElapsedTime, ReportsTheFailureOfAKernelBeforeIt) {
  const Stream stream;
  const Event start;
  const Event end;
  float time = 0;
  ASSERT_OK(orEventRecord(start, stream));
  ASSERT_OK(orLaunchKernel(stream, [] { throw std::runtime_error("broken"); }));
  ASSERT_OK(orEventRecord(end, stream));
  EXPECT_EQ(orStreamSynchronize(stream), orErrorLaunchFailure);
  EXPECT_EQ(orEventElapsedTime(&time, start, end), orErrorLaunchFailure);
  EXPECT_EQ(orEventElapsedTime(&time, end, start), orErrorLaunchFailure);
  EXPECT_MESSAGE("broken");
}

TEST(orEventRecord, OnAnIdleStreamKeepsAnUnreportedFailure) {
  const Stream stream;
  const Event event;
  ASSERT_OK(orLaunchKernel(stream, [] { throw std::runtime_error("broken"); }));
  while (orStreamQuery(stream) == orErrorNotReady) {
  }
  ASSERT_OK(orEventRecord(event, stream));
  EXPECT_EQ(orEventQuery(event), orErrorLaunchFailure);
  EXPECT_EQ(orStreamSynchronize(stream), orErrorLaunchFailure);
}

TEST(orStreamWaitEvent, FailsTheStreamWithTheFailureBeforeTheEvent) {
  const Stream broken;
  const Stream waiting;
  const Stream last;
  const Event event;
  const Event second;
  Latch latch(broken);
  bool ran = false;
  ASSERT_OK(orLaunchKernel(broken, [] { throw std::runtime_error("broken"); }));
  ASSERT_OK(orEventRecord(event, broken));
  ASSERT_OK(orStreamWaitEvent(waiting, event, 0));
  ASSERT_OK(orLaunchKernel(waiting, [&ran] { ran = true; }));
  ASSERT_OK(orEventRecord(second, waiting));
  ASSERT_OK(orStreamWaitEvent(last, second, 0));
  latch.release();
  EXPECT_EQ(orStreamSynchronize(last), orErrorLaunchFailure);
  EXPECT_MESSAGE("broken");
  EXPECT_EQ(orEventSynchronize(second), orErrorLaunchFailure);
  EXPECT_EQ(orStreamSynchronize(waiting), orErrorLaunchFailure);
  EXPECT_EQ(orStreamSynchronize(broken), orErrorLaunchFailure);
  EXPECT_FALSE(ran);
  EXPECT_OK(orDeviceSynchronize());
}

TEST(orStreamWaitEvent, FailsTheStreamIfTheFailureIsOlderThanTheWait) {
  const Stream broken;
  const Stream waiting;
  const Event event;
  ASSERT_OK(orLaunchKernel(broken, [] { throw std::runtime_error("broken"); }));
  ASSERT_OK(orEventRecord(event, broken));
  EXPECT_EQ(orStreamSynchronize(broken), orErrorLaunchFailure);
  ASSERT_OK(orStreamWaitEvent(waiting, event, 0));
  EXPECT_EQ(orStreamSynchronize(waiting), orErrorLaunchFailure);
}

TEST(orDeviceSynchronize, ReportsAFailureThatFlowedToOtherStreamsOnce) {
  const Stream broken;
  const Stream waiting;
  const Event event;
  ASSERT_OK(orLaunchKernel(broken, [] { throw std::runtime_error("broken"); }));
  ASSERT_OK(orEventRecord(event, broken));
  ASSERT_OK(orStreamWaitEvent(waiting, event, 0));
  EXPECT_EQ(orDeviceSynchronize(), orErrorLaunchFailure);
  EXPECT_OK(orDeviceSynchronize());
  EXPECT_OK(orStreamSynchronize(waiting));
  EXPECT_OK(orStreamSynchronize(broken));
}

TEST(orEventRecord, AgainCountsTheLastRecord) {
  const Stream free_stream;
  const Stream held;
  const Event event;
  ASSERT_OK(orEventRecord(event, free_stream));
  ASSERT_OK(orEventSynchronize(event));
  Latch latch(held);
  ASSERT_OK(orEventRecord(event, held));
  EXPECT_EQ(orEventQuery(event), orErrorNotReady);
  latch.release();
  ASSERT_OK(orEventSynchronize(event));
}

TEST(orEventRecord, AgainDoesNotHoldWhoWaitsForTheFirst) {
  const Stream first;
  const Stream held;
  const Stream waiting;
  const Event event;
  Latch first_latch(first);
  const Latch held_latch(held);
  ASSERT_OK(orEventRecord(event, first));
  ASSERT_OK(orStreamWaitEvent(waiting, event, 0));
  ASSERT_OK(orEventRecord(event, held));
  first_latch.release();
  EXPECT_OK(orStreamSynchronize(waiting));
  EXPECT_EQ(orEventQuery(event), orErrorNotReady);
}

TEST(orEventRecord, RacingWithADestroyNeverRecordsTheNextEvent) {
  const Stream stream;
  std::atomic<orEvent_t> target{nullptr};
  std::atomic<bool> ended{false};
  std::atomic<uint64_t> calls{0};
  std::thread recorder([&, handle = orStream_t(stream)] {
    while (!ended) {
      // Fails once the event is destroyed.
      static_cast<void>(orEventRecord(target, handle));
      ++calls;
    }
  });
  int recorded = 0;
  for (int i = 0; i < 3000; ++i) {
    orEvent_t first = nullptr;
    ASSERT_OK(orEventCreateWithFlags(&first, orEventEnableTiming));
    target = first;
    const uint64_t before = calls;
    while (calls == before) {
      std::this_thread::yield();
    }
    ASSERT_OK(orEventDestroy(first));
    orEvent_t next = nullptr; // gets the object of the destroyed event
    ASSERT_OK(orEventCreateWithFlags(&next, orEventEnableTiming));
    const uint64_t after = calls;
    while (calls < after + 2) { // so that the racing call has ended
      std::this_thread::yield();
    }
    float time = 0;
    recorded +=
        orEventElapsedTime(&time, next, next) != orErrorInvalidHandle ? 1 : 0;
    ASSERT_OK(orEventDestroy(next));
  }
  ended = true;
  recorder.join();
  EXPECT_EQ(recorded, 0);
  ASSERT_OK(orStreamSynchronize(stream));
}

TEST(orEventRecord, BadStreamLeavesTheEventAsItWas) {
  const Event event;
  orStream_t destroyed = nullptr;
  ASSERT_OK(orStreamCreate(&destroyed));
  ASSERT_OK(orStreamDestroy(destroyed));
  EXPECT_EQ(orEventRecord(event, destroyed), orErrorInvalidHandle);
  EXPECT_EQ(orEventQuery(event), orSuccess);
}

TEST(orStreamWaitEvent, BeforeTheRecordHoldsNothing) {
  const Stream stream;
  const Event event;
  ASSERT_OK(orStreamWaitEvent(stream, event, 0));
  EXPECT_OK(orStreamSynchronize(stream));
}

TEST(orStreamWaitEvent, OrdersTwoStreamsOfTwoDevices) {
  const Stream producer;
  const CurrentDevice current(1);
  const Stream consumer;
  const Event event;
  std::atomic<bool> produced{false};
  bool seen = false;
  Latch latch(producer);
  ASSERT_OK(orLaunchKernel(producer, [&produced] { produced = true; }));
  ASSERT_OK(orEventRecord(event, producer));
  ASSERT_OK(orStreamWaitEvent(consumer, event, 0));
  ASSERT_OK(orLaunchKernel(consumer, [&] { seen = produced; }));
  EXPECT_EQ(orStreamQuery(consumer), orErrorNotReady);
  latch.release();
  ASSERT_OK(orStreamSynchronize(consumer));
  EXPECT_TRUE(seen);
  ASSERT_OK(orStreamSynchronize(producer));
}

TEST(orStreamWaitEvent, OutlivesTheEvent) {
  const Stream producer;
  const Stream consumer;
  Latch latch(producer);
  {
    const Event event;
    ASSERT_OK(orEventRecord(event, producer));
    ASSERT_OK(orStreamWaitEvent(consumer, event, 0));
  }
  EXPECT_EQ(orStreamQuery(consumer), orErrorNotReady);
  latch.release();
  EXPECT_OK(orStreamSynchronize(consumer));
}

TEST(orStreamWaitEvent, UnknownFlagsAreInvalidValue) {
  const Event event;
  EXPECT_EQ(orStreamWaitEvent(nullptr, event, 1), orErrorInvalidValue);
}

TEST(orEventElapsedTime, IsNotNegativeAndGrows) {
  const Stream stream;
  const Event start;
  const Event middle;
  const Event end;
  ASSERT_OK(orEventRecord(start, stream));
  ASSERT_OK(orLaunchKernel(stream, [] {}));
  ASSERT_OK(orEventRecord(middle, stream));
  ASSERT_OK(orLaunchKernel(stream, [] {}));
  ASSERT_OK(orEventRecord(end, stream));
  ASSERT_OK(orStreamSynchronize(stream));
  float half = -1;
  float whole = -1;
  ASSERT_OK(orEventElapsedTime(&half, start, middle));
  ASSERT_OK(orEventElapsedTime(&whole, start, end));
  EXPECT_GE(half, 0);
  EXPECT_GE(whole, half);
}

TEST(orEventElapsedTime, NotReadyBeforeTheEndIsReached) {
  const Stream stream;
  const Event start;
  const Event end;
  ASSERT_OK(orEventRecord(start, stream));
  Latch latch(stream);
  ASSERT_OK(orEventRecord(end, stream));
  float ms = 0;
  EXPECT_EQ(orEventElapsedTime(&ms, start, end), orErrorNotReady);
  latch.release();
  ASSERT_OK(orStreamSynchronize(stream));
}

TEST(orEventElapsedTime, NeedsRecordsAndTiming) {
  const Event recorded;
  const Event unrecorded;
  const Event untimed(orEventDisableTiming);
  ASSERT_OK(orEventRecord(recorded, nullptr));
  ASSERT_OK(orEventRecord(untimed, nullptr));
  ASSERT_OK(orStreamSynchronize(nullptr));
  float ms = 0;
  EXPECT_EQ(
      orEventElapsedTime(&ms, recorded, unrecorded), orErrorInvalidHandle);
  EXPECT_EQ(orEventElapsedTime(&ms, recorded, untimed), orErrorInvalidHandle);
}

TEST(orEventElapsedTime, OfTwoDevicesIsInvalidHandleAndNamesBoth) {
  const Event start;
  const Event end;
  ASSERT_OK(orEventRecord(start, nullptr));
  {
    const CurrentDevice other(1);
    ASSERT_OK(orEventRecord(end, nullptr));
    ASSERT_OK(orEventSynchronize(end));
  }
  ASSERT_OK(orEventSynchronize(start));
  float ms = -1;
  EXPECT_EQ(orEventElapsedTime(&ms, start, end), orErrorInvalidHandle);
  EXPECT_EQ(ms, -1);
  const std::string message = orGetErrorMessage();
  EXPECT_NE(message.find("device 0, and end on device 1"), std::string::npos)
      << message;
  EXPECT_OK(orEventElapsedTime(&ms, start, start));
}

TEST(orEventCreate, HasTiming) {
  orEvent_t event = nullptr;
  ASSERT_OK(orEventCreate(&event));
  ASSERT_OK(orEventRecord(event, nullptr));
  ASSERT_OK(orEventSynchronize(event));
  float ms = -1;
  EXPECT_OK(orEventElapsedTime(&ms, event, event));
  EXPECT_EQ(ms, 0);
  EXPECT_OK(orEventDestroy(event));
}

TEST(orEventCreateWithFlags, TimingIsSwitchedByTheFlags) {
  for (const unsigned int flags :
       {orEventDefault, orEventEnableTiming, orEventDisableTiming}) {
    orEvent_t event = nullptr;
    ASSERT_OK(orEventCreateWithFlags(&event, flags));
    ASSERT_OK(orEventRecord(event, nullptr));
    ASSERT_OK(orEventSynchronize(event));
    float ms = -1;
    EXPECT_EQ(
        orEventElapsedTime(&ms, event, event),
        flags == orEventDisableTiming ? orErrorInvalidHandle : orSuccess);
    EXPECT_OK(orEventDestroy(event));
  }
}

TEST(orEventCreateWithFlags, ContradictoryFlagsAreInvalidValue) {
  orEvent_t event = nullptr;
  EXPECT_EQ(
      orEventCreateWithFlags(
          &event, orEventDisableTiming | orEventEnableTiming),
      orErrorInvalidValue);
  EXPECT_EQ(orEventCreateWithFlags(&event, 0x100), orErrorInvalidValue);
}

TEST(orEventDestroy, TwiceIsInvalidHandle) {
  orEvent_t event = nullptr;
  ASSERT_OK(orEventCreate(&event));
  ASSERT_OK(orEventDestroy(event));
  EXPECT_EQ(orEventDestroy(event), orErrorInvalidHandle);
  EXPECT_EQ(orEventQuery(event), orErrorInvalidHandle);
  EXPECT_EQ(orEventDestroy(nullptr), orErrorInvalidHandle);
}

TEST(orEventDestroy, RecycledEventIsLikeANewOne) {
  const Stream stream;
  const Latch latch(stream);
  {
    const Event event;
    ASSERT_OK(orEventRecord(event, stream));
  }
  const Event event;
  EXPECT_EQ(orEventQuery(event), orSuccess);
}

} // namespace
