// SPDX-License-Identifier: BSD-3-Clause
// Devices that are lost.
#include "support.h"

#include <atomic>

namespace {

/// Makes device 0 as new at the end.
class ResetAtTheEnd {
 public:
  ResetAtTheEnd() = default;
  ResetAtTheEnd(const ResetAtTheEnd&) = delete;
  ResetAtTheEnd& operator=(const ResetAtTheEnd&) = delete;
  ~ResetAtTheEnd() {
    EXPECT_OK(orDeviceReset());
  }
};

orStream_t new_stream() { // which ends with the device
  orStream_t stream = nullptr;
  EXPECT_OK(orStreamCreate(&stream));
  return stream;
}

TEST(orDeviceLose, FailsTheDeviceUntilItIsReset) {
  ASSERT_OK(orDeviceLose(0));
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(orDeviceSynchronize(), orErrorDeviceLost);
    EXPECT_MESSAGE("device 0 was lost");
  }
  ASSERT_OK(orDeviceReset());
  EXPECT_OK(orDeviceSynchronize());
  const Block block(8);
  EXPECT_OK(orMemset(block.get(), 0, 8));
}

TEST(orDeviceLose, LeavesTheOtherDevices) {
  const ResetAtTheEnd reset;
  ASSERT_OK(orDeviceLose(0));
  const CurrentDevice current(1);
  const Block block(8);
  EXPECT_OK(orMemset(block.get(), 0, 8));
  EXPECT_OK(orDeviceSynchronize());
}

TEST(orDeviceLose, OfAnotherDeviceThanTheCurrentOne) {
  ASSERT_OK(orDeviceLose(1));
  EXPECT_OK(orDeviceSynchronize());
  const CurrentDevice current(1);
  EXPECT_EQ(orDeviceSynchronize(), orErrorDeviceLost);
  EXPECT_OK(orDeviceReset());
}

TEST(orDeviceLose, PastTheCountIsInvalidDevice) {
  EXPECT_EQ(orDeviceLose(2), orErrorInvalidDevice);
  EXPECT_EQ(orDeviceLose(-1), orErrorInvalidDevice);
}

TEST(orDeviceLose, WhatRunsEndsAndWhatIsQueuedIsDropped) {
  const ResetAtTheEnd reset;
  const orStream_t stream = new_stream();
  std::atomic<bool> ended{false};
  std::atomic<bool> ran{false};
  auto argument = std::make_shared<int>(1);
  Signal started;
  Signal released;
  ASSERT_OK(orLaunchKernel(stream, [&] {
    started.set();
    released.wait();
    ended = true;
  }));
  ASSERT_OK(orLaunchKernel(stream, [&ran, argument] { ran = true; }));
  ASSERT_OK(orLaunchHostFunc(
      stream,
      [](void* p) { *static_cast<std::atomic<bool>*>(p) = true; },
      &ran));
  started.wait();
  ASSERT_OK(orDeviceLose(0));
  EXPECT_EQ(orStreamQuery(stream), orErrorDeviceLost);
  released.set();
  ASSERT_OK(orDeviceReset());
  EXPECT_TRUE(ended);
  EXPECT_FALSE(ran);
  EXPECT_EQ(argument.use_count(), 1) << "arguments of dropped work go too";
}

TEST(orDeviceLose, FailsWhoWaits) {
  const ResetAtTheEnd reset;
  const orStream_t stream = new_stream();
  const Event event;
  Latch latch(stream);
  ASSERT_OK(orEventRecord(event, stream));
  orError_t errors[3] = {};
  std::thread waiters[] = {
      std::thread([&] { errors[0] = orStreamSynchronize(stream); }),
      std::thread([&] { errors[1] = orEventSynchronize(event); }),
      std::thread([&] { errors[2] = orDeviceSynchronize(); })};
  ASSERT_OK(orDeviceLose(0));
  latch.release();
  for (auto& waiter : waiters) {
    waiter.join();
  }
  for (const orError_t error : errors) {
    EXPECT_EQ(error, orErrorDeviceLost);
  }
}

TEST(orDeviceLose, DroppedWorkIsNeverSaidToBeDone) {
  for (int round = 0; round < 200; ++round) {
    const ResetAtTheEnd reset;
    const orStream_t stream = new_stream();
    const Event event;
    std::atomic<bool> ran{false};
    Latch latch(stream);
    ASSERT_OK(orLaunchKernel(stream, [&ran] { ran = true; }));
    ASSERT_OK(orEventRecord(event, stream));
    std::thread loser([] { EXPECT_OK(orDeviceLose(0)); });
    latch.release();
    orError_t of_event = orErrorNotReady;
    orError_t of_stream = orErrorNotReady;
    while (of_stream == orErrorNotReady) {
      of_event = orEventQuery(event);
      of_stream = orStreamQuery(stream);
    }
    EXPECT_TRUE(ran || of_event != orSuccess) << round;
    EXPECT_TRUE(ran || of_stream != orSuccess) << round;
    loser.join();
  }
}

TEST(orDeviceLose, ReleasesStreamsOfOtherDevicesThatWait) {
  const ResetAtTheEnd reset;
  const orStream_t lost = new_stream();
  const Event event;
  Latch latch(lost);
  ASSERT_OK(orEventRecord(event, lost));
  const CurrentDevice current(1);
  const Stream waiting;
  ASSERT_OK(orStreamWaitEvent(waiting, event, 0));
  ASSERT_OK(orDeviceLose(0));
  latch.release();
  EXPECT_OK(orStreamSynchronize(waiting));
}

TEST(orDeviceLose, EndsItsOwnWaitForAnotherDevice) {
  const orStream_t stream = new_stream();
  const CurrentDevice current(1);
  const Stream other;
  const Event event;
  const Latch latch(other); // to the end
  ASSERT_OK(orEventRecord(event, other));
  ASSERT_OK(orStreamWaitEvent(stream, event, 0));
  const CurrentDevice back(0);
  ASSERT_OK(orDeviceLose(0));
  EXPECT_OK(orDeviceReset()); // waits for what runs: nothing
}

TEST(orDeviceLose, FirstFailureCounts) {
  const ResetAtTheEnd reset;
  const InjectedFault fault(
      {.site = orFaultLaunch, .error = orErrorIllegalAddress});
  EXPECT_EQ(
      orLaunchKernelBlocking(
          nullptr, [](void*) {}, nullptr),
      orErrorIllegalAddress);
  ASSERT_OK(orDeviceLose(0));
  EXPECT_EQ(orDeviceSynchronize(), orErrorIllegalAddress);
}

TEST(orDeviceLose, InAKernelOfTheDevice) {
  const ResetAtTheEnd reset;
  const orStream_t stream = new_stream();
  ASSERT_OK(orLaunchKernel(stream, [] { EXPECT_OK(orDeviceLose(0)); }));
  EXPECT_EQ(orStreamSynchronize(stream), orErrorDeviceLost);
}

TEST(orFree, OnALostDeviceFreesTheBlock) {
  const ResetAtTheEnd reset;
  orResourceUsage before{};
  ASSERT_OK(orGetResourceUsage(&before));
  void* pointer = nullptr;
  ASSERT_OK(orMalloc(&pointer, 8));
  ASSERT_OK(orDeviceLose(0));
  EXPECT_OK(orFree(pointer));
  orResourceUsage after{};
  ASSERT_OK(orGetResourceUsage(&after));
  EXPECT_EQ(after.deviceBlocks, before.deviceBlocks);
}

TEST(orLaunchKernel, ArgumentsStayWithTheCallerOnALostDevice) {
  const ResetAtTheEnd reset;
  ASSERT_OK(orDeviceLose(0));
  auto argument = std::make_shared<int>(1);
  EXPECT_EQ(orLaunchKernel(nullptr, [argument] {}), orErrorDeviceLost);
  EXPECT_EQ(argument.use_count(), 1);
}

TEST(orMemcpyAsync, OfABlockFreedMeanwhileIsIllegalAddress) {
  const ResetAtTheEnd reset;
  const orStream_t stream = new_stream();
  void* pointer = nullptr;
  ASSERT_OK(orMalloc(&pointer, 8));
  const PinnedBlock pinned(8);
  Latch latch(stream);
  ASSERT_OK(
      orMemcpyAsync(pinned.get(), pointer, 8, orMemcpyDeviceToHost, stream));
  ASSERT_OK(orFreeUnused(pointer)); // which it is not
  latch.release();
  EXPECT_EQ(orStreamSynchronize(stream), orErrorIllegalAddress);
  EXPECT_MESSAGE("where no block is allocated any more");
  EXPECT_EQ(orDeviceSynchronize(), orErrorIllegalAddress);
}

} // namespace
