// SPDX-License-Identifier: BSD-3-Clause
// Devices: count, current one, properties, waiting for all work.
#include "support.h"

#include <atomic>
#include <thread>

namespace {

TEST(orGetDeviceCount, IsTwoByDefault) {
  int count = 0;
  ASSERT_OK(orGetDeviceCount(&count));
  EXPECT_EQ(count, 2);
}

TEST(orGetDeviceCount, NullIsInvalidValue) {
  EXPECT_EQ(orGetDeviceCount(nullptr), orErrorInvalidValue);
  EXPECT_MESSAGE("count must not be null");
}

TEST(orSetDevice, IsSeenByThisThreadOnly) {
  const CurrentDevice current(1);
  int device = 0;
  ASSERT_OK(orGetDevice(&device));
  EXPECT_EQ(device, 1);
  std::thread([] {
    int other = 1;
    EXPECT_OK(orGetDevice(&other));
    EXPECT_EQ(other, 0);
  }).join();
}

TEST(orSetDevice, PastTheCountIsInvalidDevice) {
  EXPECT_EQ(orSetDevice(2), orErrorInvalidDevice);
  EXPECT_EQ(orSetDevice(-1), orErrorInvalidDevice);
  int device = 1;
  ASSERT_OK(orGetDevice(&device));
  EXPECT_EQ(device, 0);
}

TEST(orGetDeviceProperties, GivesNameAndMemory) {
  orDeviceProp prop;
  ASSERT_OK(orGetDeviceProperties(&prop, 1));
  EXPECT_STREQ(prop.name, "OpenReg simulated device");
  EXPECT_EQ(prop.totalGlobalMem, std::size_t{16} << 30);
  EXPECT_GE(prop.multiProcessorCount, 1);
}

TEST(orGetDeviceProperties, PastTheCountIsInvalidDevice) {
  orDeviceProp prop;
  EXPECT_EQ(orGetDeviceProperties(&prop, 2), orErrorInvalidDevice);
}

TEST(orDeviceSynchronize, WaitsForAllStreamsOfTheDevice) {
  const Stream first;
  const Stream second;
  std::atomic<int> done{0};
  for (const orStream_t stream : {orStream_t(first), orStream_t(second)}) {
    ASSERT_OK(orLaunchKernel(stream, [&done] { ++done; }));
  }
  ASSERT_OK(orLaunchKernel(orStream_t(nullptr), [&done] { ++done; }));
  ASSERT_OK(orDeviceSynchronize());
  EXPECT_EQ(done, 3);
}

TEST(orDeviceSynchronize, DoesNotWaitForAnotherDevice) {
  const CurrentDevice current(1);
  const Stream held;
  Latch latch(held);
  {
    const CurrentDevice other(0);
    EXPECT_OK(orDeviceSynchronize());
  }
  EXPECT_EQ(orStreamQuery(held), orErrorNotReady);
  latch.release();
  EXPECT_OK(orDeviceSynchronize());
}

TEST(orDeviceSynchronize, ReportsTheFailureOfEachStreamOnce) {
  const Stream first;
  const Stream second;
  for (const orStream_t stream : {orStream_t(first), orStream_t(second)}) {
    ASSERT_OK(
        orLaunchKernel(stream, [] { throw std::runtime_error("broken"); }));
  }
  EXPECT_EQ(orDeviceSynchronize(), orErrorLaunchFailure);
  EXPECT_EQ(orDeviceSynchronize(), orErrorLaunchFailure);
  EXPECT_OK(orDeviceSynchronize());
}

TEST(orDeviceSynchronize, InAKernelIsNotPermitted) {
  const Stream stream;
  orError_t error = orSuccess;
  ASSERT_OK(
      orLaunchKernel(stream, [&error] { error = orDeviceSynchronize(); }));
  ASSERT_OK(orStreamSynchronize(stream));
  EXPECT_EQ(error, orErrorNotPermitted);
}

TEST(orInit, PutsTheDevicesInUse) {
  ASSERT_OK(orInit());
  int initialized = 0;
  ASSERT_OK(orIsInitialized(&initialized));
  EXPECT_EQ(initialized, 1);
}

} // namespace
