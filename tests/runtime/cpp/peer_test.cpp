// SPDX-License-Identifier: BSD-3-Clause
// Kernels that access the memory of another device.
#include "support.h"

#include <functional>

namespace {

/// Access of device 0 to the memory of device 1 during the scope.
class Enabled {
 public:
  Enabled() {
    EXPECT_OK(orDeviceEnablePeerAccess(1, 0));
  }
  Enabled(const Enabled&) = delete;
  Enabled& operator=(const Enabled&) = delete;
  ~Enabled() {
    EXPECT_OK(orDeviceDisablePeerAccess(1));
  }
};

/// A block of a device, allocated and freed while that device is current.
class BlockOf {
 public:
  BlockOf(int device, std::size_t size) {
    const CurrentDevice current(device);
    EXPECT_OK(orMalloc(&pointer_, size));
    EXPECT_OK(orMemset(pointer_, 0, size));
  }
  BlockOf(const BlockOf&) = delete;
  BlockOf& operator=(const BlockOf&) = delete;
  ~BlockOf() {
    EXPECT_OK(orFree(pointer_));
  }
  void* get() const {
    return pointer_;
  }

 private:
  void* pointer_ = nullptr;
};

/// Makes a kernel of `device` write 7 to `pointer`.
orError_t write_in_kernel(int device, void* pointer) {
  const CurrentDevice current(device);
  const Stream stream;
  orError_t error = orErrorUnknown;
  EXPECT_OK(orLaunchKernel(stream, [&error, pointer] {
    void* data = nullptr;
    error = orGetKernelPointer(&data, pointer);
    if (error == orSuccess) {
      *static_cast<char*>(data) = 7;
    }
  }));
  EXPECT_OK(orStreamSynchronize(stream));
  return error;
}

char first_byte(const void* pointer) {
  char value = -1;
  EXPECT_OK(orMemcpy(&value, pointer, 1, orMemcpyDeviceToHost));
  return value;
}

TEST(orDeviceCanAccessPeer, IsTrueForTwoDevices) {
  int can = -1;
  ASSERT_OK(orDeviceCanAccessPeer(&can, 0, 1));
  EXPECT_EQ(can, 1);
  ASSERT_OK(orDeviceCanAccessPeer(&can, 1, 0));
  EXPECT_EQ(can, 1);
}

TEST(orDeviceCanAccessPeer, IsFalseForADeviceAndItself) {
  int can = -1;
  ASSERT_OK(orDeviceCanAccessPeer(&can, 1, 1));
  EXPECT_EQ(can, 0);
}

TEST(orDeviceCanAccessPeer, NullIsInvalidValue) {
  EXPECT_EQ(orDeviceCanAccessPeer(nullptr, 0, 1), orErrorInvalidValue);
  EXPECT_MESSAGE("canAccess must not be null");
}

TEST(orDeviceCanAccessPeer, PastTheCountIsInvalidDevice) {
  int can = -1;
  EXPECT_EQ(orDeviceCanAccessPeer(&can, 2, 0), orErrorInvalidDevice);
  EXPECT_EQ(orDeviceCanAccessPeer(&can, 0, -1), orErrorInvalidDevice);
}

TEST(orDeviceEnablePeerAccess, LetsKernelsAccessThePeer) {
  const BlockOf block(1, 64);
  ASSERT_OK(orDeviceEnablePeerAccess(1, 0));
  EXPECT_OK(write_in_kernel(0, block.get()));
  EXPECT_EQ(first_byte(block.get()), 7);
  EXPECT_OK(orDeviceDisablePeerAccess(1));
}

TEST(orDeviceEnablePeerAccess, IsOneWay) {
  const BlockOf block(0, 64);
  const Enabled access;
  EXPECT_EQ(write_in_kernel(1, block.get()), orErrorPeerAccessNotEnabled);
}

TEST(orDeviceEnablePeerAccess, FlagsAreInvalidValue) {
  EXPECT_EQ(orDeviceEnablePeerAccess(1, 1), orErrorInvalidValue);
  EXPECT_MESSAGE("flags 1 are not known");
}

TEST(orDeviceEnablePeerAccess, PastTheCountIsInvalidDevice) {
  EXPECT_EQ(orDeviceEnablePeerAccess(2, 0), orErrorInvalidDevice);
  EXPECT_MESSAGE("expected a number from 0 to 1");
  EXPECT_EQ(orDeviceEnablePeerAccess(-1, 0), orErrorInvalidDevice);
}

TEST(orDeviceEnablePeerAccess, ToItselfIsInvalidDevice) {
  EXPECT_EQ(orDeviceEnablePeerAccess(0, 0), orErrorInvalidDevice);
  EXPECT_MESSAGE("expected another device");
}

TEST(orDeviceEnablePeerAccess, TwiceIsPeerAccessAlreadyEnabled) {
  const Enabled access;
  EXPECT_EQ(orDeviceEnablePeerAccess(1, 0), orErrorPeerAccessAlreadyEnabled);
  EXPECT_MESSAGE("device 0 has access to the memory of device 1 already");
}

TEST(orDeviceEnablePeerAccess, OnALostDeviceIsDeviceLost) {
  ASSERT_OK(orDeviceLose(0));
  EXPECT_EQ(orDeviceEnablePeerAccess(1, 0), orErrorDeviceLost);
  EXPECT_OK(orDeviceReset());
}

TEST(orDeviceEnablePeerAccess, AfterAnIllegalAddressIsIllegalAddress) {
  {
    const InjectedFailure failure(
        {.site = orFailureLaunch, .error = orErrorIllegalAddress});
    EXPECT_EQ(
        orLaunchKernelBlocking(
            nullptr, [](void*) {}, nullptr),
        orErrorIllegalAddress);
  }
  EXPECT_EQ(orDeviceEnablePeerAccess(1, 0), orErrorIllegalAddress);
  EXPECT_OK(orDeviceReset());
}

TEST(orDeviceDisablePeerAccess, EndsTheAccess) {
  const BlockOf block(1, 64);
  ASSERT_OK(orDeviceEnablePeerAccess(1, 0));
  EXPECT_OK(orDeviceDisablePeerAccess(1));
  EXPECT_EQ(write_in_kernel(0, block.get()), orErrorPeerAccessNotEnabled);
}

TEST(orDeviceDisablePeerAccess, WithoutAccessIsPeerAccessNotEnabled) {
  EXPECT_EQ(orDeviceDisablePeerAccess(1), orErrorPeerAccessNotEnabled);
  EXPECT_EQ(orDeviceDisablePeerAccess(0), orErrorPeerAccessNotEnabled);
}

TEST(orDeviceDisablePeerAccess, PastTheCountIsInvalidDevice) {
  EXPECT_EQ(orDeviceDisablePeerAccess(2), orErrorInvalidDevice);
}

TEST(orGetKernelPointer, OfAPeerIsPeerAccessNotEnabledAndNamesBothDevices) {
  const BlockOf block(0, 64);
  const CurrentDevice current(1);
  ASSERT_OK(orLaunchKernel(orStream_t(nullptr), [pointer = block.get()] {
    void* data = nullptr;
    EXPECT_EQ(orGetKernelPointer(&data, pointer), orErrorPeerAccessNotEnabled);
    EXPECT_MESSAGE("device 1 has no access to the memory of device 0");
  }));
  ASSERT_OK(orDeviceSynchronize());
}

TEST(orGetKernelPointer, OfAPeerInABlockingKernelNeedsAccessToo) {
  const BlockOf block(1, 64);
  struct Call {
    void* pointer;
    orError_t error;
  } call{block.get(), orSuccess};
  ASSERT_OK(orLaunchKernelBlocking(
      nullptr,
      [](void* args) {
        auto& arguments = *static_cast<Call*>(args);
        void* data = nullptr;
        arguments.error = orGetKernelPointer(&data, arguments.pointer);
      },
      &call));
  EXPECT_EQ(call.error, orErrorPeerAccessNotEnabled);
}

TEST(orGetKernelPointer, OnTheHostNeedsNoAccess) {
  const BlockOf block(1, 64);
  void* data = nullptr;
  EXPECT_OK(orGetKernelPointer(&data, block.get()));
}

TEST(orMemcpyPeer, NeedsNoAccess) {
  const BlockOf from(0, 64);
  const BlockOf to(1, 64);
  ASSERT_OK(orMemset(from.get(), 9, 64));
  ASSERT_OK(orMemcpyPeer(to.get(), 1, from.get(), 0, 64));
  EXPECT_EQ(first_byte(to.get()), 9);
}

TEST(orDeviceReset, EndsTheAccessOfTheDeviceAndToIt) {
  for (const int device : {0, 1}) {
    ASSERT_OK(orDeviceEnablePeerAccess(1, 0));
    {
      const CurrentDevice current(device);
      ASSERT_OK(orDeviceReset());
    }
    EXPECT_EQ(orDeviceDisablePeerAccess(1), orErrorPeerAccessNotEnabled)
        << "after a reset of device " << device;
  }
}

TEST(orDeviceCanAccessPeer, IsFalseWherePeerAccessIsTurnedOff) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        setenv("OPENREG_PEER_ACCESS", "0", 1);
        int can = -1;
        EXPECT_OK(orDeviceCanAccessPeer(&can, 0, 1));
        std::_Exit(can);
      },
      testing::ExitedWithCode(0),
      "");
}

TEST(orDeviceEnablePeerAccess, WithPeerAccessTurnedOffIsNotSupported) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        setenv("OPENREG_PEER_ACCESS", "0", 1);
        report(orDeviceEnablePeerAccess(1, 0), orErrorNotSupported);
      },
      testing::ExitedWithCode(0),
      "device 0 cannot access the memory of device 1 .OPENREG_PEER_ACCESS is");
}

TEST(orMemcpyPeer, WorksWherePeerAccessIsTurnedOff) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        setenv("OPENREG_PEER_ACCESS", "0", 1);
        const BlockOf from(0, 64);
        const BlockOf to(1, 64);
        report(orMemcpyPeer(to.get(), 1, from.get(), 0, 64), orSuccess);
      },
      testing::ExitedWithCode(0),
      "");
}

/// Blocks the default stream of device 1 and copies between the devices: the
/// copy must not return before the stream is released.
void expect_to_wait_for_both(const std::function<orError_t()>& copy) {
  orStream_t stream = nullptr;
  ASSERT_OK(orStreamGetDefault(&stream, 1));
  Latch latch(stream);
  ASSERT_OK(orDeviceSetLimit(orLimitWaitTimeout, 1));
  {
    const CurrentDevice other(1);
    ASSERT_OK(orDeviceSetLimit(orLimitWaitTimeout, 1));
  }
  EXPECT_EQ(copy(), orErrorTimeout);
  latch.release();
  for (const int device : {0, 1}) {
    const CurrentDevice current(device);
    ASSERT_OK(orDeviceSetLimit(orLimitWaitTimeout, 0));
  }
  EXPECT_OK(copy());
}

TEST(orMemcpyPeer, WaitsForTheDefaultStreamsOfBothDevices) {
  const BlockOf here(0, 64);
  const BlockOf there(1, 64);
  expect_to_wait_for_both(
      [&] { return orMemcpyPeer(here.get(), 0, there.get(), 1, 64); });
  expect_to_wait_for_both(
      [&] { return orMemcpyPeer(there.get(), 1, here.get(), 0, 64); });
}

TEST(orMemcpy, BetweenDevicesWaitsForTheDefaultStreamsOfBoth) {
  const BlockOf here(0, 64);
  const BlockOf there(1, 64);
  for (const auto kind : {orMemcpyDeviceToDevice, orMemcpyDefault}) {
    expect_to_wait_for_both(
        [&] { return orMemcpy(here.get(), there.get(), 64, kind); });
    expect_to_wait_for_both(
        [&] { return orMemcpy(there.get(), here.get(), 64, kind); });
  }
}

TEST(orMemcpyPeer, InAKernelOfTheSourceCopies) {
  const BlockOf from(0, 64);
  const BlockOf to(1, 64);
  ASSERT_OK(orMemset(from.get(), 9, 64));
  ASSERT_OK(orLaunchKernel(orStream_t(nullptr), [&] {
    EXPECT_OK(orMemcpyPeer(to.get(), 1, from.get(), 0, 64));
  }));
  ASSERT_OK(orDeviceSynchronize());
  EXPECT_EQ(first_byte(to.get()), 9);
}

} // namespace
