// SPDX-License-Identifier: BSD-3-Clause
// Device resets.
#include "support.h"

#include <atomic>

namespace {

TEST(orDeviceReset, FreesTheBlocksOfTheDevice) {
  void* pointer = nullptr;
  ASSERT_OK(orMalloc(&pointer, 1000));
  ASSERT_OK(orMemoryUnprotect(pointer));
  ASSERT_OK(orDeviceReset());
  EXPECT_EQ(orFree(pointer), orErrorInvalidValue);
  orResourceUsage usage = OPENREG_RESOURCE_USAGE_INIT;
  ASSERT_OK(orGetResourceUsage(&usage));
  EXPECT_EQ(usage.deviceBlocks, 0u);
  EXPECT_EQ(usage.deviceBytes, 0u);
  EXPECT_EQ(usage.unprotectedBlocks, 0u);
}

TEST(orDeviceReset, LeavesTheOtherDevices) {
  CurrentDevice current(1);
  const Block block(8);
  const Stream stream;
  Latch latch(stream);
  ASSERT_OK(orMemset(block.get(), 5, 8));
  {
    const CurrentDevice other(0);
    ASSERT_OK(orDeviceReset());
  }
  EXPECT_EQ(orStreamQuery(stream), orErrorNotReady);
  latch.release();
  EXPECT_OK(orStreamSynchronize(stream));
  char value = 0;
  EXPECT_OK(orMemcpy(&value, block.get(), 1, orMemcpyDeviceToHost));
  EXPECT_EQ(value, 5);
}

TEST(orDeviceReset, EndsStreamsButNotTheDefaultOne) {
  orStream_t stream = nullptr;
  orStream_t of_device = nullptr;
  ASSERT_OK(orStreamCreate(&stream));
  ASSERT_OK(orStreamGetDefault(&of_device, 0));
  ASSERT_OK(orDeviceReset());
  EXPECT_EQ(orStreamQuery(stream), orErrorInvalidHandle);
  EXPECT_OK(orStreamQuery(of_device));
  EXPECT_OK(orLaunchKernel(of_device, [] {}));
  EXPECT_OK(orStreamSynchronize(of_device));
}

TEST(orDeviceReset, WaitsForRunningWorkAndDropsQueuedWork) {
  orStream_t stream = nullptr;
  ASSERT_OK(orStreamCreate(&stream));
  std::atomic<bool> ended{false};
  std::atomic<bool> ran{false};
  auto argument = std::make_shared<int>(1);
  Signal started;
  ASSERT_OK(orLaunchKernel(stream, [&] {
    started.set();
    while (orStreamQuery(nullptr) != orErrorDeviceLost) {
      std::this_thread::yield(); // until the reset has begun
    }
    ended = true;
  }));
  ASSERT_OK(orLaunchKernel(stream, [&ran, argument] { ran = true; }));
  started.wait();
  ASSERT_OK(orDeviceReset());
  EXPECT_TRUE(ended);
  EXPECT_FALSE(ran);
  EXPECT_EQ(argument.use_count(), 1);
}

TEST(orDeviceReset, ForgetsTheFailuresOfStreams) {
  orStream_t live = nullptr;
  ASSERT_OK(orStreamCreate(&live));
  {
    const Stream destroyed;
    for (const orStream_t stream :
         {orStream_t(nullptr), live, orStream_t(destroyed)}) {
      ASSERT_OK(
          orLaunchKernel(stream, [] { throw std::runtime_error("broken"); }));
      while (orStreamQuery(stream) == orErrorNotReady) {
        std::this_thread::yield();
      }
    }
  }
  ASSERT_OK(orDeviceReset());
  EXPECT_OK(orDeviceSynchronize());
}

TEST(orDeviceReset, RestoresTheLimits) {
  ASSERT_OK(orDeviceSetLimit(orLimitMemory, 1 << 20));
  ASSERT_OK(orDeviceSetLimit(orLimitWaitTimeout, 1000));
  ASSERT_OK(orDeviceReset());
  std::size_t value = 0;
  ASSERT_OK(orDeviceGetLimit(&value, orLimitMemory));
  EXPECT_EQ(value, device_memory());
  ASSERT_OK(orDeviceGetLimit(&value, orLimitWaitTimeout));
  EXPECT_EQ(value, 0u);
}

TEST(orDeviceReset, KeepsEventsPinnedMemoryAndFailures) {
  const Event reached;
  const Event dropped;
  const PinnedBlock pinned(8);
  const InjectedFailure failure({.site = orFailureLaunch, .first = 100});
  orStream_t stream = nullptr;
  ASSERT_OK(orStreamCreate(&stream));
  ASSERT_OK(orEventRecord(reached, stream));
  {
    Latch latch(stream);
    ASSERT_OK(orEventRecord(dropped, stream));
    ASSERT_OK(orDeviceLose(0));
  }
  ASSERT_OK(orDeviceReset());
  EXPECT_OK(orEventQuery(reached));
  EXPECT_EQ(orEventSynchronize(dropped), orErrorDeviceLost);
  EXPECT_OK(orEventRecord(dropped, nullptr));
  EXPECT_OK(orEventSynchronize(dropped));
  const Block block(8);
  EXPECT_OK(orMemcpy(block.get(), pinned.get(), 8, orMemcpyDefault));
  EXPECT_EQ(failure.calls(), 1u);
}

TEST(orDeviceReset, InAKernelIsNotPermitted) {
  const Stream stream;
  const Block block(8);
  ASSERT_OK(orLaunchKernel(
      stream, [] { EXPECT_EQ(orDeviceReset(), orErrorNotPermitted); }));
  ASSERT_OK(orStreamSynchronize(stream));
  EXPECT_OK(orMemset(block.get(), 0, 8)) << "nothing is reset";
}

TEST(orDeviceReset, InAKernelOfAnotherDeviceResets) {
  const CurrentDevice current(1);
  const Stream stream;
  ASSERT_OK(orDeviceLose(0));
  ASSERT_OK(orLaunchKernel(stream, [] {
    EXPECT_OK(orSetDevice(0));
    EXPECT_OK(orDeviceReset());
  }));
  EXPECT_OK(orStreamSynchronize(stream));
}

TEST(orDeviceReset, TimeoutLeavesTheDeviceLostUntilTheNext) {
  orStream_t stream = nullptr;
  ASSERT_OK(orStreamCreate(&stream));
  ASSERT_OK(orDeviceSetLimit(orLimitWaitTimeout, 1));
  void* pointer = nullptr;
  ASSERT_OK(orMalloc(&pointer, 8));
  {
    Latch latch(stream);
    EXPECT_EQ(orDeviceReset(), orErrorTimeout);
    EXPECT_EQ(orDeviceSynchronize(), orErrorDeviceLost);
    EXPECT_MESSAGE("a reset of device 0 did not finish: call orDeviceReset");
    EXPECT_OK(orMemoryProtect(pointer)) << "the block is still there";
  }
  ASSERT_OK(orDeviceSetLimit(orLimitWaitTimeout, 0));
  ASSERT_OK(orDeviceReset());
  EXPECT_OK(orDeviceSynchronize());
}

TEST(orDeviceReset, ManyTimesLeavesNothing) {
  for (int i = 0; i < 50; ++i) {
    orStream_t stream = nullptr;
    ASSERT_OK(orStreamCreate(&stream));
    void* pointer = nullptr;
    ASSERT_OK(orMalloc(&pointer, 1 << 20));
    ASSERT_OK(orMemsetAsync(pointer, i, 1 << 20, stream));
    ASSERT_OK(orLaunchKernel(stream, [] {}));
    ASSERT_OK(orDeviceReset());
  }
}

} // namespace
