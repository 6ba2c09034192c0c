// SPDX-License-Identifier: BSD-3-Clause
// Limits of memory and of waits.
#include "support.h"

#include <atomic>
#include <chrono>
#include <string>

namespace {

using WaitTimeout = FreshProcess;
constexpr std::size_t kMiB = std::size_t{1} << 20;

TEST(orDeviceGetLimit, IsAllMemoryAndNoTimeoutAtFirst) {
  std::size_t value = 1;
  ASSERT_OK(orDeviceGetLimit(&value, orLimitMemory));
  EXPECT_EQ(value, device_memory());
  ASSERT_OK(orDeviceGetLimit(&value, orLimitWaitTimeout));
  EXPECT_EQ(value, 0u);
}

TEST(orDeviceGetLimit, UnknownLimitIsInvalidValue) {
  std::size_t value = 0;
  EXPECT_EQ(
      orDeviceGetLimit(&value, static_cast<orLimit>(2)), orErrorInvalidValue);
  EXPECT_MESSAGE("limit 2 is not an orLimit: expected 0 or 1");
}

TEST(orDeviceSetLimit, IsReadBackAndForTheCurrentDeviceOnly) {
  const Limit memory(orLimitMemory, kMiB);
  ASSERT_OK(orDeviceSetLimit(orLimitWaitTimeout, 86'400'000));
  std::size_t value = 0;
  ASSERT_OK(orDeviceGetLimit(&value, orLimitMemory));
  EXPECT_EQ(value, kMiB);
  ASSERT_OK(orDeviceGetLimit(&value, orLimitWaitTimeout));
  EXPECT_EQ(value, 86'400'000u);
  {
    const CurrentDevice current(1);
    ASSERT_OK(orDeviceGetLimit(&value, orLimitMemory));
    EXPECT_EQ(value, device_memory());
    ASSERT_OK(orDeviceGetLimit(&value, orLimitWaitTimeout));
    EXPECT_EQ(value, 0u);
  }
  ASSERT_OK(orDeviceSetLimit(orLimitWaitTimeout, 0));
}

TEST(orDeviceSetLimit, ImpossibleLimitIsInvalidValue) {
  EXPECT_EQ(
      orDeviceSetLimit(orLimitMemory, device_memory() + 1),
      orErrorInvalidValue);
  EXPECT_MESSAGE("expected 0 to " + std::to_string(device_memory()) + " bytes");
  EXPECT_EQ(
      orDeviceSetLimit(orLimitWaitTimeout, 86'400'001), orErrorInvalidValue);
  EXPECT_MESSAGE("expected 0 to 86400000 milliseconds");
  EXPECT_EQ(orDeviceSetLimit(static_cast<orLimit>(-1), 0), orErrorInvalidValue);
  EXPECT_MESSAGE("limit -1");
}

TEST(orMalloc, PastTheMemoryLimitIsMemoryAllocation) {
  const Limit limit(orLimitMemory, kMiB);
  void* pointer = nullptr;
  EXPECT_EQ(orMalloc(&pointer, kMiB + 1), orErrorMemoryAllocation);
  EXPECT_MESSAGE("1048576 of its 1048576 bytes are free");
  const Block all(kMiB);
  EXPECT_EQ(orMalloc(&pointer, 1), orErrorMemoryAllocation);
  const CurrentDevice current(1);
  const Block other(2 * kMiB);
}

TEST(orMalloc, MemoryLimitBelowCurrentUseHoldsUntilEnoughIsFreed) {
  const Block kept(kMiB);
  {
    const Block more(kMiB);
    const Limit limit(orLimitMemory, kMiB + 512);
    std::size_t free = 1;
    std::size_t total = 0;
    ASSERT_OK(orMemGetInfo(&free, &total));
    EXPECT_EQ(free, 0u);
    EXPECT_EQ(total, kMiB + 512);
    EXPECT_OK(orMemset(more.get(), 1, kMiB)) << "the block is usable";
    void* pointer = nullptr;
    EXPECT_EQ(orMalloc(&pointer, 1), orErrorMemoryAllocation);
  }
  const Limit limit(orLimitMemory, kMiB + 512);
  const Block now(512);
}

TEST(orStreamSynchronize, TimeoutLeavesTheWorkGoingOn) {
  const Limit limit(orLimitWaitTimeout, 1);
  const Stream stream;
  std::atomic<bool> ran{false};
  const Event done;
  Latch latch(stream);
  ASSERT_OK(orLaunchKernel(stream, [&ran] { ran = true; }));
  ASSERT_OK(orEventRecord(done, stream));
  EXPECT_EQ(orStreamSynchronize(stream), orErrorTimeout);
  EXPECT_MESSAGE("after 1 ms; they continue");
  EXPECT_EQ(orEventSynchronize(done), orErrorTimeout);
  EXPECT_MESSAGE("was not reached within 1 ms");
  EXPECT_EQ(orDeviceSynchronize(), orErrorTimeout);
  EXPECT_FALSE(ran);
  latch.release();
  ASSERT_OK(orDeviceSetLimit(orLimitWaitTimeout, 0));
  ASSERT_OK(orStreamSynchronize(stream));
  EXPECT_TRUE(ran);
}

TEST(orStreamSynchronize, LimitThatIsLongEnoughChangesNothing) {
  const Limit limit(orLimitWaitTimeout, 3'600'000);
  const Stream stream;
  std::atomic<int> count{0};
  for (int i = 0; i < 100; ++i) {
    ASSERT_OK(orLaunchKernel(stream, [&count] { ++count; }));
  }
  ASSERT_OK(orStreamSynchronize(stream));
  EXPECT_EQ(count, 100);
  ASSERT_OK(orLaunchKernel(stream, [] { throw std::runtime_error("broken"); }));
  EXPECT_EQ(orStreamSynchronize(stream), orErrorLaunchFailure);
}

TEST(orStreamSynchronize, LimitIsThatOfTheDeviceOfTheStream) {
  const Stream stream; // of device 0
  const CurrentDevice current(1);
  const Limit limit(orLimitWaitTimeout, 1);
  Latch latch(stream);
  std::thread releaser([&latch] { latch.release(); });
  EXPECT_OK(orStreamSynchronize(stream));
  releaser.join();
}

TEST(orFree, TimeoutKeepsTheBlock) {
  const Block block(16);
  const Stream stream;
  Latch latch(stream);
  {
    const Limit limit(orLimitWaitTimeout, 1);
    EXPECT_EQ(orFree(block.get()), orErrorTimeout);
  }
  latch.release();
  EXPECT_OK(orMemset(block.get(), 0, 16));
}

TEST(orFreeHost, TimeoutKeepsTheMemory) {
  const PinnedBlock pinned(16);
  const CurrentDevice current(1);
  const Stream stream;
  Latch latch(stream);
  {
    const Limit limit(orLimitWaitTimeout, 1);
    EXPECT_EQ(orFreeHost(pinned.get()), orErrorTimeout);
  }
  *pinned.get() = 1;
}

TEST(orMemcpy, TimeoutCopiesNothing) {
  const Block block(1);
  ASSERT_OK(orMemset(block.get(), 1, 1));
  char host = 2;
  {
    const Limit limit(orLimitWaitTimeout, 1);
    Latch latch(nullptr);
    EXPECT_EQ(
        orMemcpy(&host, block.get(), 1, orMemcpyDeviceToHost), orErrorTimeout);
  }
  ASSERT_OK(orDeviceSynchronize());
  EXPECT_EQ(host, 2);
}

TEST(orLaunchKernelBlocking, TimeoutLaunchesNothing) {
  const Stream stream;
  bool ran = false;
  {
    const Limit limit(orLimitWaitTimeout, 1);
    Latch latch(stream);
    EXPECT_EQ(
        orLaunchKernelBlocking(
            stream, [](void* p) { *static_cast<bool*>(p) = true; }, &ran),
        orErrorTimeout);
  }
  ASSERT_OK(orStreamSynchronize(stream));
  EXPECT_FALSE(ran);
}

TEST_F(WaitTimeout, OfTheEnvironmentIsTheLimitAtFirstAndAfterAReset) {
  EXPECT_EXIT(
      {
        setenv("OPENREG_WAIT_TIMEOUT", "7", 1);
        std::size_t value = 0;
        EXPECT_OK(orDeviceGetLimit(&value, orLimitWaitTimeout));
        EXPECT_EQ(value, 7u);
        EXPECT_OK(orDeviceSetLimit(orLimitWaitTimeout, 8));
        EXPECT_OK(orDeviceReset());
        EXPECT_OK(orDeviceGetLimit(&value, orLimitWaitTimeout));
        EXPECT_EQ(value, 7u);
        Latch latch(nullptr);
        EXPECT_EQ(orStreamSynchronize(nullptr), orErrorTimeout);
        finish();
      },
      testing::ExitedWithCode(0),
      "^$");
}

TEST_F(WaitTimeout, WrongValueFailsEveryUse) {
  for (const char* value :
       {"-1",
        "1s",
        "86400001",
#if !defined(_WIN32) // which has no empty environment variables
        "",
#endif
        "x"}) {
    EXPECT_EXIT(
        {
          setenv("OPENREG_WAIT_TIMEOUT", value, 1);
          report(orInit(), orErrorInvalidValue);
        },
        testing::ExitedWithCode(0),
        "OPENREG_WAIT_TIMEOUT=.* a whole number of milliseconds from 0 to");
  }
}

} // namespace
