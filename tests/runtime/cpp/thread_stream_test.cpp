// SPDX-License-Identifier: BSD-3-Clause
// orStreamPerThread, used in threads that end, so that its worker ends too.
#include "support.h"

#include <algorithm>
#include <atomic>

namespace {

/// Runs `body` in a separate thread.
template <typename Body>
void in_a_thread(const Body& body) {
  std::thread(body).join();
}

TEST(orStreamGetDevice, OfTheStreamPerThreadIsTheCurrentOne) {
  in_a_thread([] {
    int device = -1;
    EXPECT_OK(orStreamGetDevice(orStreamPerThread, &device));
    EXPECT_EQ(device, 0);
    const CurrentDevice current(1);
    EXPECT_OK(orStreamGetDevice(orStreamPerThread, &device));
    EXPECT_EQ(device, 1);
  });
}

TEST(orLaunchKernel, OnTheStreamPerThreadRunsInOrder) {
  in_a_thread([] {
    std::vector<int> order;
    for (int i = 0; i < 100; ++i) {
      ASSERT_OK(orLaunchKernel(
          orStreamPerThread, [&order, i] { order.push_back(i); }));
    }
    ASSERT_OK(orStreamSynchronize(orStreamPerThread));
    EXPECT_EQ(order.size(), 100u);
    EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
  });
}

TEST(orStreamQuery, OfTheStreamPerThreadSeesThisThreadOnly) {
  in_a_thread([] {
    const Latch latch(orStreamPerThread);
    EXPECT_EQ(orStreamQuery(orStreamPerThread), orErrorNotReady);
    EXPECT_OK(orStreamQuery(nullptr));
    in_a_thread([] { EXPECT_OK(orStreamQuery(orStreamPerThread)); });
  });
}

TEST(orStreamWaitEvent, OrdersTheStreamPerThread) {
  in_a_thread([] {
    std::atomic<bool> ran{false};
    const Stream stream;
    const Event event;
    {
      const Latch latch(stream);
      ASSERT_OK(orEventRecord(event, stream));
      ASSERT_OK(orStreamWaitEvent(orStreamPerThread, event, 0));
      ASSERT_OK(orLaunchKernel(orStreamPerThread, [&ran] { ran = true; }));
      EXPECT_FALSE(ran);
    }
    ASSERT_OK(orStreamSynchronize(orStreamPerThread));
    EXPECT_TRUE(ran);
  });
}

TEST(orStreamDestroy, OfTheStreamPerThreadIsInvalidHandle) {
  in_a_thread([] {
    EXPECT_EQ(orStreamDestroy(orStreamPerThread), orErrorInvalidHandle);
    EXPECT_MESSAGE("orStreamPerThread");
  });
}

TEST(orGetResourceUsage, DoesNotCountTheStreamsOfThreads) {
  in_a_thread([] {
    orResourceUsage before = OPENREG_RESOURCE_USAGE_INIT;
    orResourceUsage after = OPENREG_RESOURCE_USAGE_INIT;
    ASSERT_OK(orGetResourceUsage(&before));
    ASSERT_OK(orStreamSynchronize(orStreamPerThread));
    ASSERT_OK(orGetResourceUsage(&after));
    EXPECT_EQ(after.streams, before.streams);
  });
}

TEST(orLaunchKernel, OnTheStreamPerThreadRunsAlsoIfTheThreadHasEnded) {
  std::atomic<bool> ran{false};
  const Stream stream;
  const Event event;
  {
    const Latch latch(stream);
    ASSERT_OK(orEventRecord(event, stream));
    in_a_thread([&] {
      ASSERT_OK(orStreamWaitEvent(orStreamPerThread, event, 0));
      ASSERT_OK(orLaunchKernel(orStreamPerThread, [&ran] { ran = true; }));
    });
    EXPECT_FALSE(ran);
  }
  ASSERT_OK(orDeviceSynchronize());
  EXPECT_TRUE(ran);
}

TEST(orFreeAsync, AtTheEndOfAThreadTakesItsStreamPerThread) {
  struct AtEnd {
    void* block = nullptr;
    ~AtEnd() {
      EXPECT_OK(orFreeAsync(block, orStreamPerThread));
    }
  };
  in_a_thread([] {
    static thread_local AtEnd at_end; // destroyed before the stream
    ASSERT_OK(orMallocAsync(&at_end.block, 64, orStreamPerThread));
  });
  ASSERT_OK(orDeviceSynchronize());
  orResourceUsage usage = OPENREG_RESOURCE_USAGE_INIT;
  ASSERT_OK(orGetResourceUsage(&usage));
  EXPECT_EQ(usage.deviceBlocks, 0u);
}

TEST(orDeviceReset, CreatesNewStreamsPerThread) {
  in_a_thread([] {
    ASSERT_OK(orLaunchKernel(orStreamPerThread, [] {}));
    ASSERT_OK(orDeviceReset());
    bool ran = false;
    ASSERT_OK(orLaunchKernel(orStreamPerThread, [&ran] { ran = true; }));
    ASSERT_OK(orStreamSynchronize(orStreamPerThread));
    EXPECT_TRUE(ran);
  });
}

TEST(orStreamRunsHere, InAKernelTheStreamPerThreadIsThatOfTheRunningThread) {
  in_a_thread([] {
    // Blocking kernels of other streams run on this thread.
    const Latch latch(orStreamPerThread);
    ASSERT_OK(orLaunchKernelBlocking(
        nullptr,
        [](void*) {
          EXPECT_EQ(orStreamQuery(orStreamPerThread), orErrorNotReady);
        },
        nullptr));
  });
}

} // namespace
