// SPDX-License-Identifier: BSD-3-Clause
// Stream-ordered allocations and frees.
#include "memory_pool.h"

#include <atomic>
#include <cstdint>

namespace {

TEST(orMallocAsync, ReturnsABlockThatTheStreamCanUse) {
  const Stream stream;
  char* block = allocate(1000, stream);
  ASSERT_OK(orMemsetAsync(block, 3, 1000, stream));
  ASSERT_OK(orStreamSynchronize(stream));
  EXPECT_EQ(first_byte(block + 999), 3);
  EXPECT_EQ(orMemset(block, 0, 1001), orErrorInvalidValue);
  ASSERT_OK(orFreeAsync(block, stream));
}

TEST(orMallocAsync, OfNoBytesReturnsNull) {
  void* pointer = &pointer;
  EXPECT_OK(orMallocAsync(&pointer, 0, nullptr));
  EXPECT_EQ(pointer, nullptr);
  EXPECT_OK(orFreeAsync(nullptr, nullptr));
}

TEST(orMallocAsync, OnABusyStreamReusesItsFreedBlocksImmediately) {
  const Stream stream;
  char* block = allocate(kSize, stream);
  {
    const Latch latch(stream);
    ASSERT_OK(orFreeAsync(block, stream));
    EXPECT_EQ(allocate(kSize, stream), block);
  }
  ASSERT_OK(orFreeAsync(block, stream));
  ASSERT_OK(orDeviceSynchronize());
}

TEST(orMallocAsync, OnAnotherStreamHasItOnceTheFreeWasPassed) {
  const Stream stream;
  const Stream other;
  char* block = allocate(kSize, stream);
  char* second = nullptr;
  const Event passed;
  {
    const Latch latch(stream);
    ASSERT_OK(orFreeAsync(block, stream));
    ASSERT_OK(orEventRecord(passed, stream));
    second = allocate(kSize, other);
    EXPECT_NE(second, block);
  }
  ASSERT_OK(orEventSynchronize(passed)); // keeps memory in the pool
  EXPECT_EQ(allocate(kSize, other), block);
  ASSERT_OK(orFree(block));
  ASSERT_OK(orFree(second));
}

TEST(orMallocAsync, InAKernelHasNothingThatEnqueuedWorkUses) {
  const Stream stream;
  char* block = allocate(kSize, stream);
  char* in_kernel = nullptr;
  Signal freed;
  ASSERT_OK(orLaunchKernel(stream, [&] {
    freed.wait();
    in_kernel = allocate(kSize, stream);
  }));
  ASSERT_OK(orMemsetAsync(block, 1, kSize, stream));
  ASSERT_OK(orFreeAsync(block, stream));
  freed.set();
  ASSERT_OK(orStreamSynchronize(stream));
  EXPECT_NE(in_kernel, block);
  ASSERT_OK(orFree(in_kernel));
}

TEST(orMallocAsync, ABlockOfLessThanHalfTheSizeIsNotReused) {
  const Stream stream;
  char* block = allocate(kSize, stream);
  ASSERT_OK(orFreeAsync(block, stream));
  char* small = allocate(512, stream);
  EXPECT_NE(small, block);
  char* half = allocate(kSize / 2, stream);
  EXPECT_EQ(half, block);
  EXPECT_EQ(orMemset(half, 0, kSize), orErrorInvalidValue); // now smaller
  ASSERT_OK(orFree(small));
  ASSERT_OK(orFree(half));
}

TEST(orMallocAsync, WaitsForFreesOfThePoolRatherThanFail) {
  const Limit limit(orLimitMemory, kSize);
  const Stream stream;
  const Stream other;
  char* block = allocate(kSize, stream);
  Latch latch(stream);
  ASSERT_OK(orFreeAsync(block, stream));
  void* pointer = nullptr;
  ASSERT_OK(orDeviceSetLimit(orLimitWaitTimeout, 20));
  EXPECT_EQ(orMallocAsync(&pointer, kSize, other), orErrorMemoryAllocation);
  ASSERT_OK(orDeviceSetLimit(orLimitWaitTimeout, 0));
  std::thread releaser([&latch] { latch.release(); });
  EXPECT_EQ(allocate(kSize, other), block);
  releaser.join();
  ASSERT_OK(orFree(block));
}

TEST(orMallocAsync, WaitsForTheFreeButNotForLaterWork) {
  const Limit limit(orLimitMemory, kSize);
  const Stream stream;
  const Stream other;
  Signal released;
  char* block = allocate(kSize, stream);
  Latch latch(stream);
  ASSERT_OK(orFreeAsync(block, stream));
  ASSERT_OK(orLaunchKernel(stream, [&] { released.wait(); }));
  latch.release();
  EXPECT_EQ(allocate(kSize, other), block);
  released.set();
  ASSERT_OK(orFree(block));
}

TEST(orMallocAsync, InAKernelWaitsForFreesOfOtherStreams) {
  // Its stream has a free too, behind the kernel.
  const Limit limit(orLimitMemory, 2 * kSize);
  const Stream stream;
  const Stream other;
  char* own = allocate(kSize, stream);
  char* foreign = allocate(kSize, other);
  Latch latch(other);
  ASSERT_OK(orFreeAsync(foreign, other));
  void* pointer = nullptr;
  orError_t result = orErrorUnknown;
  Signal freed;
  ASSERT_OK(orLaunchKernel(stream, [&, handle = orStream_t(stream)] {
    freed.wait();
    result = orMallocAsync(&pointer, kSize, handle);
  }));
  ASSERT_OK(orFreeAsync(own, stream));
  freed.set();
  latch.release();
  ASSERT_OK(orStreamSynchronize(stream));
  ASSERT_EQ(result, orSuccess);
  EXPECT_EQ(pointer, foreign);
  ASSERT_OK(orFree(pointer));
}

TEST(orMallocAsync, PastTheMemoryOfTheDeviceIsMemoryAllocation) {
  void* pointer = &pointer;
  EXPECT_EQ(
      orMallocAsync(&pointer, SIZE_MAX, nullptr), orErrorMemoryAllocation);
  EXPECT_EQ(pointer, nullptr);
}

TEST(orMallocAsync, IsAnAllocationToInjectedFailures) {
  const InjectedFailure failure(
      {.site = orFailureMalloc, .error = orErrorMemoryAllocation});
  void* pointer = nullptr;
  EXPECT_EQ(orMallocAsync(&pointer, 64, nullptr), orErrorMemoryAllocation);
  EXPECT_EQ(failure.hits(), 1u);
}

TEST(orMalloc, ReleasesKeptPoolMemoryBeforeItFails) {
  orDeviceProp prop = OPENREG_DEVICE_PROP_INIT;
  ASSERT_OK(orGetDeviceProperties(&prop, 0));
  const orMemPool_t pool = default_pool();
  set(pool, orMemPoolAttrReleaseThreshold, ~std::uint64_t{0});
  ASSERT_OK(orFreeAsync(allocate(kSize, nullptr), nullptr));
  ASSERT_OK(orDeviceSynchronize());
  EXPECT_EQ(reserved(pool), kSize);
  ASSERT_OK(orDeviceSetLimit(orLimitMemory, kSize));
  void* pointer = nullptr;
  EXPECT_OK(orMalloc(&pointer, kSize));
  EXPECT_EQ(reserved(pool), 0u);
  EXPECT_OK(orFree(pointer));
  ASSERT_OK(orDeviceSetLimit(orLimitMemory, prop.totalGlobalMem));
  set(pool, orMemPoolAttrReleaseThreshold, 0);
}

TEST(orFreeAsync, WorkOfBeforeStillReachesTheBlock) {
  const Stream stream;
  char* block = allocate(kSize, stream);
  const PinnedBlock pinned(kSize);
  char* last = pinned.get() + kSize - 1;
  *last = 0;
  {
    const Latch latch(stream);
    ASSERT_OK(orMemsetAsync(block, 4, kSize, stream));
    ASSERT_OK(orMemcpyAsync(
        pinned.get(), block, kSize, orMemcpyDeviceToHost, stream));
    ASSERT_OK(orFreeAsync(block, stream));
    // A smaller one in the same place, for later work.
    EXPECT_EQ(allocate(kSize / 2 + 1, stream), block);
  }
  EXPECT_OK(orStreamSynchronize(stream));
  EXPECT_EQ(*last, 4);
  ASSERT_OK(orFree(block));
}

TEST(orFreeAsync, KernelOfBeforeStillReachesTheBlock) {
  for (const bool of_pool : {true, false}) {
    const Stream stream;
    void* block = nullptr;
    if (of_pool) {
      block = allocate(64, stream);
    } else {
      ASSERT_OK(orMalloc(&block, 64));
    }
    char first = 0;
    orError_t found = orErrorUnknown;
    {
      const Latch latch(stream);
      ASSERT_OK(orLaunchKernel(stream, [&, handle = orStream_t(stream)] {
        void* data = nullptr;
        found = orGetKernelPointer(&data, block);
        if (found == orSuccess) {
          static_cast<char*>(data)[0] = 42;
          EXPECT_OK(
              orMemcpyAsync(&first, block, 1, orMemcpyDeviceToHost, handle));
        }
      }));
      ASSERT_OK(orFreeAsync(block, stream));
    }
    ASSERT_OK(orStreamSynchronize(stream));
    EXPECT_EQ(found, orSuccess);
    EXPECT_EQ(first, 42);
  }
}

TEST(orMallocAsync, ThatNoFreeCouldMakePossibleWaitsForNone) {
  const Stream stream;
  const Pool pool(1024);
  void* block = nullptr;
  ASSERT_OK(orMallocFromPoolAsync(&block, 1024, pool, stream));
  const Latch latch(stream);
  ASSERT_OK(orFreeAsync(block, stream));
  EXPECT_EQ(
      orMallocFromPoolAsync(&block, 2048, pool, nullptr),
      orErrorMemoryAllocation);
  EXPECT_MESSAGE("of its maxSize of 1024 bytes");
  EXPECT_EQ(
      orMallocFromPoolAsync(&block, SIZE_MAX / 2, pool, nullptr),
      orErrorMemoryAllocation);
}

TEST(orFreeAsync, EndsTheBlockForLaterCalls) {
  const Stream stream;
  char* block = allocate(64, stream);
  {
    const Latch latch(stream);
    ASSERT_OK(orFreeAsync(block, stream));
    EXPECT_EQ(orFreeAsync(block, stream), orErrorInvalidValue);
    EXPECT_MESSAGE("it was freed already");
    EXPECT_EQ(orMemsetAsync(block, 0, 1, stream), orErrorInvalidValue);
    EXPECT_MESSAGE("was freed");
    EXPECT_EQ(orFreeUnused(block), orErrorInvalidValue);
    orPointerAttributes attributes = OPENREG_POINTER_ATTRIBUTES_INIT;
    ASSERT_OK(orPointerGetAttributes(&attributes, block));
    EXPECT_EQ(attributes.type, orMemoryTypeUnmanaged);
    orResourceUsage usage = OPENREG_RESOURCE_USAGE_INIT;
    ASSERT_OK(orGetResourceUsage(&usage));
    EXPECT_EQ(usage.deviceBlocks, 0u);
    EXPECT_EQ(usage.deviceBytes, 0u);
  }
  ASSERT_OK(orDeviceSynchronize());
}

TEST(orFree, AfterOrFreeAsyncIsInvalidValue) {
  char* block = allocate(64, nullptr);
  ASSERT_OK(orFreeAsync(block, nullptr));
  EXPECT_EQ(orFree(block), orErrorInvalidValue);
  ASSERT_OK(orDeviceSynchronize());
}

TEST(orFreeAsync, PointerToOtherMemoryIsInvalidValue) {
  int object = 0;
  EXPECT_EQ(orFreeAsync(&object, nullptr), orErrorInvalidValue);
  EXPECT_MESSAGE("is not a device pointer");
  const Block block(64);
  EXPECT_EQ(orFreeAsync(block.get(1), nullptr), orErrorInvalidValue);
  EXPECT_MESSAGE("it is inside of the block");
}

TEST(orFreeAsync, OfABlockOfOrMallocFreesItInStreamOrder) {
  const std::size_t before = free_bytes();
  const Stream stream;
  void* block = nullptr;
  ASSERT_OK(orMalloc(&block, kSize));
  {
    const Latch latch(stream);
    ASSERT_OK(orMemsetAsync(block, 1, kSize, stream));
    ASSERT_OK(orFreeAsync(block, stream));
    EXPECT_EQ(free_bytes(), before - kSize);
    char* other = allocate(kSize, stream);
    EXPECT_NE(other, block); // not in a pool, so not reused
    ASSERT_OK(orFreeAsync(other, stream));
  }
  EXPECT_OK(orStreamSynchronize(stream));
  EXPECT_EQ(free_bytes(), before);
}

TEST(orFreeAsync, OnALostDeviceFreesTheBlock) {
  char* block = allocate(64, nullptr);
  ASSERT_OK(orDeviceLose(0));
  EXPECT_OK(orFreeAsync(block, nullptr));
  ASSERT_OK(orDeviceReset());
}

TEST(orFree, OfABlockOfAPoolWaitsForTheDevice) {
  const std::size_t before = free_bytes();
  const Stream stream;
  char* block = allocate(kSize, stream);
  std::atomic<bool> ran{false};
  Latch latch(stream);
  ASSERT_OK(orLaunchKernel(stream, [&ran] { ran = true; }));
  std::thread releaser([&latch] { latch.release(); });
  EXPECT_OK(orFree(block));
  EXPECT_TRUE(ran);
  releaser.join();
  EXPECT_EQ(free_bytes(), before);
}

TEST(orMallocAsync, ByManyThreadsReturnsDistinctBlocks) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([i] {
      const Stream stream;
      for (int round = 0; round < 200; ++round) {
        char* block = allocate(512, stream);
        ASSERT_OK(orMemsetAsync(block, i, 512, stream));
        char value = -1;
        ASSERT_OK(orMemcpyAsync(
            &value, block + 511, 1, orMemcpyDeviceToHost, stream));
        EXPECT_EQ(value, i);
        ASSERT_OK(orFreeAsync(block, stream));
      }
    });
  }
  for (auto& thread : threads) {
    thread.join();
  }
  ASSERT_OK(orDeviceSynchronize());
  EXPECT_EQ(reserved(default_pool()), 0u);
}

} // namespace
