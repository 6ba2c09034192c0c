// SPDX-License-Identifier: BSD-3-Clause
// Devices on which an assertion has failed.
#include "support.h"

#include <atomic>

namespace {

TEST(orDeviceAssertFail, FailsTheDeviceUntilItIsReset) {
  ASSERT_OK(orDeviceAssertFail(0, "index 9 is out of bounds"));
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(orDeviceSynchronize(), orErrorAssert);
    EXPECT_MESSAGE("index 9 is out of bounds");
  }
  EXPECT_STREQ(orGetErrorString(orErrorAssert), "device-side assert triggered");
  ASSERT_OK(orDeviceReset());
  EXPECT_OK(orDeviceSynchronize());
  const Block block(8);
  EXPECT_OK(orMemset(block.get(), 0, 8));
}

TEST(orDeviceAssertFail, LeavesTheOtherDevices) {
  ASSERT_OK(orDeviceAssertFail(1, "an assertion"));
  EXPECT_OK(orDeviceSynchronize());
  const CurrentDevice current(1);
  EXPECT_EQ(orDeviceSynchronize(), orErrorAssert);
  EXPECT_OK(orDeviceReset());
}

TEST(orDeviceAssertFail, InAKernelDropsQueuedWork) {
  orStream_t stream = nullptr;
  ASSERT_OK(orStreamCreate(&stream));
  std::atomic<bool> ran{false};
  Latch latch(stream);
  ASSERT_OK(orLaunchKernel(
      stream, [] { EXPECT_OK(orDeviceAssertFail(0, "an assertion")); }));
  ASSERT_OK(orLaunchKernel(stream, [&ran] { ran = true; }));
  latch.release();
  EXPECT_EQ(orStreamSynchronize(stream), orErrorAssert);
  ASSERT_OK(orDeviceReset());
  EXPECT_FALSE(ran);
}

TEST(orDeviceAssertFail, FirstFailureCounts) {
  ASSERT_OK(orDeviceAssertFail(0, "the first"));
  ASSERT_OK(orDeviceAssertFail(0, "the second"));
  ASSERT_OK(orDeviceLose(0));
  EXPECT_EQ(orDeviceSynchronize(), orErrorAssert);
  EXPECT_MESSAGE("the first");
  ASSERT_OK(orDeviceReset());
}

TEST(orDeviceAssertFail, PastTheCountIsInvalidDevice) {
  EXPECT_EQ(orDeviceAssertFail(2, "an assertion"), orErrorInvalidDevice);
}

TEST(orDeviceAssertFail, NullIsInvalidValue) {
  EXPECT_EQ(orDeviceAssertFail(0, nullptr), orErrorInvalidValue);
  EXPECT_MESSAGE("message must not be null");
}

} // namespace
