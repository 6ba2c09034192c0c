// SPDX-License-Identifier: BSD-3-Clause
// Lost devices.
#include "support.h"

#include <atomic>

namespace {

/// Resets device 0 at the end.
class ResetAtTheEnd {
 public:
  ResetAtTheEnd() = default;
  ResetAtTheEnd(const ResetAtTheEnd&) = delete;
  ResetAtTheEnd& operator=(const ResetAtTheEnd&) = delete;
  ~ResetAtTheEnd() {
    EXPECT_OK(orDeviceReset());
  }
};

orStream_t new_stream() { // destroyed by the device's reset
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

TEST(orDeviceLose, RunningWorkEndsAndQueuedWorkIsDropped) {
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
      &ran,
      nullptr));
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

TEST(orDeviceLose, FailsStreamsOfOtherDevicesThatWait) {
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
  EXPECT_EQ(orStreamSynchronize(waiting), orErrorDeviceLost);
  EXPECT_OK(orStreamSynchronize(waiting)) << "its own device is not lost";
}

TEST(orDeviceLose, EndsItsOwnWaitForAnotherDevice) {
  const orStream_t stream = new_stream();
  const CurrentDevice current(1);
  const Stream other;
  const Event event;
  const Latch latch(other); // until the test ends
  ASSERT_OK(orEventRecord(event, other));
  ASSERT_OK(orStreamWaitEvent(stream, event, 0));
  const CurrentDevice back(0);
  ASSERT_OK(orDeviceLose(0));
  EXPECT_OK(orDeviceReset()); // nothing is running, so it does not wait
}

TEST(orDeviceLose, FirstFailureCounts) {
  const ResetAtTheEnd reset;
  const InjectedFailure failure(
      {.site = orFailureLaunch, .error = orErrorIllegalAddress});
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
  orResourceUsage before = OPENREG_RESOURCE_USAGE_INIT;
  ASSERT_OK(orGetResourceUsage(&before));
  void* pointer = nullptr;
  ASSERT_OK(orMalloc(&pointer, 8));
  ASSERT_OK(orDeviceLose(0));
  EXPECT_OK(orFree(pointer));
  orResourceUsage after = OPENREG_RESOURCE_USAGE_INIT;
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
  ASSERT_OK(orFreeUnused(pointer)); // unused, but the device is lost
  latch.release();
  EXPECT_EQ(orStreamSynchronize(stream), orErrorIllegalAddress);
  EXPECT_MESSAGE("where no block is allocated any more");
  EXPECT_EQ(orDeviceSynchronize(), orErrorIllegalAddress);
}

/// A block of device 1, which is lost during the scope.
class LostBlock {
 public:
  LostBlock() {
    const CurrentDevice other(1);
    EXPECT_OK(orMalloc(&pointer_, 8));
    EXPECT_OK(orDeviceLose(1));
  }
  LostBlock(const LostBlock&) = delete;
  LostBlock& operator=(const LostBlock&) = delete;
  ~LostBlock() {
    const CurrentDevice other(1);
    EXPECT_OK(orDeviceReset());
  }
  void* get() const {
    return pointer_;
  }

 private:
  void* pointer_ = nullptr;
};

TEST(orMemcpy, FromOrToALostDeviceIsDeviceLost) {
  const LostBlock lost;
  const Block block(8);
  char host[8] = {};
  EXPECT_EQ(
      orMemcpy(host, lost.get(), 8, orMemcpyDeviceToHost), orErrorDeviceLost);
  EXPECT_EQ(
      orMemcpy(block.get(), lost.get(), 8, orMemcpyDeviceToDevice),
      orErrorDeviceLost);
  EXPECT_MESSAGE("device 1 was lost");
  EXPECT_EQ(
      orMemcpy(lost.get(), block.get(), 8, orMemcpyDeviceToDevice),
      orErrorDeviceLost);
  EXPECT_OK(orDeviceSynchronize()) << "device 0 is in order";
}

TEST(orMemcpyAsync, FromOrToALostDeviceOnAnotherIsDeviceLost) {
  const LostBlock lost;
  const Block block(8);
  const PinnedBlock pinned(8);
  char host[8] = {};
  for (void* other :
       {static_cast<void*>(block.get()),
        static_cast<void*>(pinned.get()),
        static_cast<void*>(host)}) {
    EXPECT_EQ(
        orMemcpyAsync(other, lost.get(), 8, orMemcpyDefault, nullptr),
        orErrorDeviceLost);
    EXPECT_EQ(
        orMemcpyAsync(lost.get(), other, 8, orMemcpyDefault, nullptr),
        orErrorDeviceLost);
  }
  EXPECT_OK(orDeviceSynchronize());
}

TEST(orMemcpyPeer, FromOrToALostDeviceIsDeviceLost) {
  const LostBlock lost;
  const Block block(8);
  EXPECT_EQ(orMemcpyPeer(block.get(), 0, lost.get(), 1, 8), orErrorDeviceLost);
  EXPECT_EQ(orMemcpyPeer(lost.get(), 1, block.get(), 0, 8), orErrorDeviceLost);
  EXPECT_OK(orDeviceSynchronize());
}

TEST(orMemcpyPeerAsync, FromOrToALostDeviceOnAnotherIsDeviceLost) {
  const LostBlock lost;
  const Block block(8);
  EXPECT_EQ(
      orMemcpyPeerAsync(block.get(), 0, lost.get(), 1, 8, nullptr),
      orErrorDeviceLost);
  EXPECT_EQ(
      orMemcpyPeerAsync(lost.get(), 1, block.get(), 0, 8, nullptr),
      orErrorDeviceLost);
  EXPECT_OK(orDeviceSynchronize());
}

TEST(orMemsetAsync, OfALostDeviceOnAnotherIsDeviceLost) {
  const LostBlock lost;
  EXPECT_EQ(orMemsetAsync(lost.get(), 1, 8, nullptr), orErrorDeviceLost);
  EXPECT_OK(orDeviceSynchronize());
}

TEST(orMemcpyPeerAsync, WhoseOtherDeviceIsLostMeanwhileFailsAtTheNextWait) {
  const Block to(8);
  const CurrentDevice other(1);
  void* from = nullptr;
  ASSERT_OK(orMalloc(&from, 8));
  {
    const CurrentDevice current(0);
    Latch latch(nullptr);
    ASSERT_OK(orMemcpyPeerAsync(to.get(), 0, from, 1, 8, nullptr));
    ASSERT_OK(orDeviceLose(1));
    latch.release();
    EXPECT_EQ(orStreamSynchronize(nullptr), orErrorDeviceLost);
    EXPECT_MESSAGE("device 1 was lost");
    EXPECT_OK(orDeviceSynchronize()) << "device 0 is in order";
  }
  ASSERT_OK(orDeviceReset());
}

TEST(orMemcpyPeerAsync, WhoseOtherDeviceIsResetMeanwhileFailsAtTheNextWait) {
  const Block to(8);
  const CurrentDevice other(1);
  void* from = nullptr;
  ASSERT_OK(orMalloc(&from, 8));
  orStream_t stream = nullptr;
  ASSERT_OK(orStreamGetDefault(&stream, 0));
  Latch latch(stream);
  ASSERT_OK(orMemcpyPeerAsync(to.get(), 0, from, 1, 8, stream));
  ASSERT_OK(orDeviceReset());
  const Block same(8); // probably at the old block's address
  latch.release();
  EXPECT_EQ(orStreamSynchronize(stream), orErrorDeviceLost);
  EXPECT_MESSAGE("the device was reset while the call waited");
  EXPECT_OK(orStreamSynchronize(stream)) << "device 0 is in order";
}

TEST(orDeviceEnablePeerAccess, ToALostDeviceIsDeviceLost) {
  const LostBlock lost;
  EXPECT_EQ(orDeviceEnablePeerAccess(1, 0), orErrorDeviceLost);
  EXPECT_MESSAGE("device 1 was lost");
}

TEST(orGetKernelPointer, OfALostDeviceIsItsAddress) {
  const LostBlock lost;
  void* address = nullptr;
  EXPECT_OK(orGetKernelPointer(&address, lost.get()));
}

TEST(orMemoryUnprotect, OfALostDeviceOpensTheBlock) {
  const LostBlock lost;
  EXPECT_OK(orMemoryUnprotect(lost.get()));
  auto* byte = static_cast<volatile char*>(lost.get());
  *byte = 3;
  EXPECT_EQ(*byte, 3);
}

} // namespace
