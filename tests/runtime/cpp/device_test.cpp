// SPDX-License-Identifier: BSD-3-Clause
// Devices: count, current device, properties, synchronization.
#include "support.h"

#include <atomic>
#include <cstring>
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

TEST(orGetDevice, IsTheFirstOneInANewThread) {
  int device = -1;
  std::thread([&device] { EXPECT_OK(orGetDevice(&device)); }).join();
  EXPECT_EQ(device, 0);
}

TEST(orSetDevice, MakesTheDeviceCurrent) {
  ASSERT_OK(orSetDevice(1));
  int device = 0;
  EXPECT_OK(orGetDevice(&device));
  EXPECT_EQ(device, 1);
  ASSERT_OK(orSetDevice(0));
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

TEST(orGetDeviceProperties, ReturnsNameAndMemory) {
  orDeviceProp prop = OPENREG_DEVICE_PROP_INIT;
  ASSERT_OK(orGetDeviceProperties(&prop, 1));
  EXPECT_STREQ(prop.name, "OpenReg simulated device");
  orSetting memory = OPENREG_SETTING_INIT;
  ASSERT_OK(orGetSettingByName("OPENREG_DEVICE_MEMORY", &memory));
  EXPECT_EQ(prop.totalGlobalMem, memory.number);
  EXPECT_GE(prop.multiProcessorCount, 1);
}

TEST(orGetDeviceProperties, PastTheCountIsInvalidDevice) {
  orDeviceProp prop = OPENREG_DEVICE_PROP_INIT;
  EXPECT_EQ(orGetDeviceProperties(&prop, 2), orErrorInvalidDevice);
}

TEST(orSetDeviceModel, ChangesTheReportOfAllDevices) {
  orDeviceProp before = OPENREG_DEVICE_PROP_INIT;
  ASSERT_OK(orGetDeviceProperties(&before, 0));
  orDeviceProp model = OPENREG_DEVICE_PROP_INIT;
  std::strcpy(model.name, "Model");
  model.multiProcessorCount = 40;
  model.major = 7;
  model.minor = 5;
  ASSERT_OK(orSetDeviceModel(&model));
  orDeviceProp prop = OPENREG_DEVICE_PROP_INIT;
  ASSERT_OK(orGetDeviceProperties(&prop, 1));
  EXPECT_STREQ(prop.name, "Model");
  EXPECT_EQ(prop.multiProcessorCount, 40);
  EXPECT_EQ(prop.major * 10 + prop.minor, 75);
  EXPECT_EQ(prop.totalGlobalMem, before.totalGlobalMem);
  ASSERT_OK(orSetDeviceModel(&before));
}

TEST(orSetDeviceModel, RejectsUnusableValues) {
  orDeviceProp model = OPENREG_DEVICE_PROP_INIT;
  model.multiProcessorCount = 1;
  EXPECT_EQ(orSetDeviceModel(&model), orErrorInvalidValue);
  EXPECT_MESSAGE("prop.name");
  std::memset(model.name, 'x', sizeof(model.name));
  EXPECT_EQ(orSetDeviceModel(&model), orErrorInvalidValue);
  std::strcpy(model.name, "Model");
  model.multiProcessorCount = 0;
  EXPECT_EQ(orSetDeviceModel(&model), orErrorInvalidValue);
  EXPECT_MESSAGE("multiProcessorCount 0");
}

int attribute(orDeviceAttr attr) {
  int value = -1;
  EXPECT_OK(orDeviceGetAttribute(&value, attr, 0)) << "attribute " << attr;
  return value;
}

TEST(orDeviceGetAttribute, AgreesWithTheProperties) {
  orDeviceProp prop = OPENREG_DEVICE_PROP_INIT;
  ASSERT_OK(orGetDeviceProperties(&prop, 0));
  EXPECT_EQ(attribute(orDevAttrMultiProcessorCount), prop.multiProcessorCount);
  EXPECT_EQ(attribute(orDevAttrComputeCapabilityMajor), prop.major);
  EXPECT_EQ(attribute(orDevAttrComputeCapabilityMinor), prop.minor);
}

TEST(orDeviceGetAttribute, ReturnsTheCapabilitiesOfTheDevice) {
  EXPECT_EQ(attribute(orDevAttrMemoryAlignment), 512);
  EXPECT_EQ(attribute(orDevAttrConcurrentKernels), 1);
  EXPECT_EQ(attribute(orDevAttrStreamPrioritiesSupported), 0);
  EXPECT_EQ(attribute(orDevAttrUnifiedAddressing), 1);
  EXPECT_EQ(attribute(orDevAttrPageableMemoryAccess), 0);
  EXPECT_EQ(attribute(orDevAttrHostRegisterSupported), 1);
  EXPECT_EQ(attribute(orDevAttrIpcSupported), 1);
}

TEST(orDeviceGetAttribute, IsWrittenIfKnown) {
  int value = 0;
  ASSERT_OK(orDeviceGetAttribute(&value, orDevAttrMemoryAlignment, 1));
  EXPECT_EQ(value, 512);
  ASSERT_OK(orDeviceGetAttribute(&value, orDevAttrKernelPointers, 1));
  EXPECT_EQ(value, 1);
  EXPECT_EQ(
      orDeviceGetAttribute(&value, static_cast<orDeviceAttr>(12), 1),
      orErrorInvalidValue);
  EXPECT_MESSAGE("attr 12 is not an orDeviceAttr");
}

TEST(orDeviceGetAttribute, CountsResets) {
  const CurrentDevice current(1);
  int before = 0;
  int after = 0;
  ASSERT_OK(orDeviceGetAttribute(&before, orDevAttrResetCount, 1));
  ASSERT_OK(orDeviceReset());
  ASSERT_OK(orDeviceGetAttribute(&after, orDevAttrResetCount, 1));
  EXPECT_EQ(after, before + 1);
}

TEST(orDeviceGetAttribute, PastTheCountIsInvalidDevice) {
  int value = 0;
  EXPECT_EQ(
      orDeviceGetAttribute(&value, orDevAttrMemoryAlignment, 2),
      orErrorInvalidDevice);
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
  ASSERT_OK(orLaunchKernel(
      stream, [] { EXPECT_EQ(orDeviceSynchronize(), orErrorNotPermitted); }));
  ASSERT_OK(orStreamSynchronize(stream));
}

} // namespace
