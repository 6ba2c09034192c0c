// SPDX-License-Identifier: BSD-3-Clause
// Allocations in the order of streams, and pools.
#include "support.h"

#include <atomic>
#include <cstdint>

namespace {

constexpr std::size_t kSize = std::size_t{1} << 20;

char* allocate(std::size_t size, orStream_t stream) {
  void* pointer = nullptr;
  EXPECT_OK(orMallocAsync(&pointer, size, stream));
  return static_cast<char*>(pointer);
}

orMemPool_t default_pool(int device = 0) {
  orMemPool_t pool = nullptr;
  EXPECT_OK(orDeviceGetDefaultMemPool(&pool, device));
  return pool;
}

std::uint64_t attribute(orMemPool_t pool, orMemPoolAttr attr) {
  std::uint64_t value = ~std::uint64_t{0};
  EXPECT_OK(orMemPoolGetAttribute(pool, attr, &value));
  return value;
}
std::uint64_t reserved(orMemPool_t pool) {
  return attribute(pool, orMemPoolAttrReservedMemCurrent);
}
std::uint64_t used(orMemPool_t pool) {
  return attribute(pool, orMemPoolAttrUsedMemCurrent);
}

void set(orMemPool_t pool, orMemPoolAttr attr, std::uint64_t value) {
  EXPECT_OK(orMemPoolSetAttribute(pool, attr, &value));
}

std::size_t free_bytes() {
  std::size_t free = 0;
  std::size_t total = 0;
  EXPECT_OK(orMemGetInfo(&free, &total));
  return free;
}

char first_byte(const void* pointer) {
  char value = -1;
  EXPECT_OK(orMemcpy(&value, pointer, 1, orMemcpyDeviceToHost));
  return value;
}

/// A pool as long as the scope lasts.
class Pool {
 public:
  explicit Pool(std::size_t max_size = 0, int device = 0) {
    const orMemPoolProps props{sizeof(props), device, max_size};
    EXPECT_OK(orMemPoolCreate(&handle_, &props));
  }
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;
  ~Pool() {
    EXPECT_OK(orMemPoolDestroy(handle_));
  }
  operator orMemPool_t() const {
    return handle_;
  }

 private:
  orMemPool_t handle_ = nullptr;
};

TEST(orMallocAsync, GivesABlockThatTheStreamCanUse) {
  const Stream stream;
  char* block = allocate(1000, stream);
  ASSERT_OK(orMemsetAsync(block, 3, 1000, stream));
  ASSERT_OK(orStreamSynchronize(stream));
  EXPECT_EQ(first_byte(block + 999), 3);
  EXPECT_EQ(orMemset(block, 0, 1001), orErrorInvalidValue);
  ASSERT_OK(orFreeAsync(block, stream));
}

TEST(orMallocAsync, OfNoBytesGivesNull) {
  void* pointer = &pointer;
  EXPECT_OK(orMallocAsync(&pointer, 0, nullptr));
  EXPECT_EQ(pointer, nullptr);
  EXPECT_OK(orFreeAsync(nullptr, nullptr));
}

TEST(orMallocAsync, OnABusyStreamHasWhatWasFreedThereAtOnce) {
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
  ASSERT_OK(orEventSynchronize(passed)); // which gives nothing to the device
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
  EXPECT_EQ(orMemset(half, 0, kSize), orErrorInvalidValue); // it is smaller now
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

TEST(orMallocAsync, WaitsForTheFreeAndNotForWhatComesBehindIt) {
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
  // Its own stream has a free too, which comes after the kernel.
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

TEST(orMalloc, HasWhatPoolsKeepRatherThanFail) {
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

TEST(orFreeAsync, WhatIsNoBlockIsInvalidValue) {
  int object = 0;
  EXPECT_EQ(orFreeAsync(&object, nullptr), orErrorInvalidValue);
  EXPECT_MESSAGE("is not a device pointer");
  const Block block(64);
  EXPECT_EQ(orFreeAsync(block.get(1), nullptr), orErrorInvalidValue);
  EXPECT_MESSAGE("it is inside of the block");
}

TEST(orFreeAsync, OfABlockOfOrMallocGivesItToTheDeviceInItsTurn) {
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
    EXPECT_NE(other, block); // no pool has it
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

TEST(orStreamSynchronize, GivesBackWhatIsBeyondTheReleaseThreshold) {
  const orMemPool_t pool = default_pool();
  const Stream stream;
  set(pool, orMemPoolAttrReleaseThreshold, kSize);
  char* first = allocate(kSize, stream);
  char* second = allocate(kSize, stream);
  ASSERT_OK(orFreeAsync(first, stream));
  ASSERT_OK(orFreeAsync(second, stream));
  EXPECT_EQ(reserved(pool), 2 * kSize);
  ASSERT_OK(orStreamSynchronize(stream));
  EXPECT_EQ(reserved(pool), kSize);
  set(pool, orMemPoolAttrReleaseThreshold, 0);
  ASSERT_OK(orDeviceSynchronize());
  EXPECT_EQ(reserved(pool), 0u);
}

TEST(orMemGetInfo, CountsReservedMemoryAsUsed) {
  const std::size_t before = free_bytes();
  ASSERT_OK(orFreeAsync(allocate(kSize, nullptr), nullptr));
  EXPECT_EQ(free_bytes(), before - kSize);
  ASSERT_OK(orDeviceSynchronize());
  EXPECT_EQ(free_bytes(), before);
}

TEST(orMemPoolGetAttribute, CountsWhatIsReservedAndUsed) {
  const Pool pool;
  void* block = nullptr;
  ASSERT_OK(orMallocFromPoolAsync(&block, 1000, pool, nullptr));
  EXPECT_EQ(reserved(pool), 1024u);
  EXPECT_EQ(used(pool), 1024u);
  ASSERT_OK(orFreeAsync(block, nullptr));
  EXPECT_EQ(reserved(pool), 1024u);
  EXPECT_EQ(used(pool), 0u);
  ASSERT_OK(orDeviceSynchronize());
  EXPECT_EQ(reserved(pool), 0u);
  EXPECT_EQ(attribute(pool, orMemPoolAttrReservedMemHigh), 1024u);
  EXPECT_EQ(attribute(pool, orMemPoolAttrUsedMemHigh), 1024u);
  std::uint64_t value = 1;
  EXPECT_OK(orMemPoolGetAttribute(pool, orMemPoolAttrReleaseThreshold, &value));
  EXPECT_EQ(value, 0u);
  EXPECT_EQ(
      orMemPoolGetAttribute(pool, static_cast<orMemPoolAttr>(5), &value),
      orErrorInvalidValue);
  EXPECT_MESSAGE("attr 5 is not an orMemPoolAttr: expected 0 to 4");
}

TEST(orMemPoolSetAttribute, ResetsHighWatermarksToWhatIsThere) {
  const Pool pool;
  std::uint64_t value = 1;
  EXPECT_EQ(
      orMemPoolSetAttribute(pool, orMemPoolAttrUsedMemHigh, &value),
      orErrorInvalidValue);
  EXPECT_MESSAGE("value 1 of a high watermark: expected 0");
  EXPECT_EQ(
      orMemPoolSetAttribute(pool, orMemPoolAttrUsedMemCurrent, &value),
      orErrorInvalidValue);
  EXPECT_MESSAGE("attr 3 cannot be set");
  void* block = nullptr;
  ASSERT_OK(orMallocFromPoolAsync(&block, 512, pool, nullptr));
  ASSERT_OK(orFreeAsync(block, nullptr));
  value = 0;
  ASSERT_OK(orMemPoolSetAttribute(pool, orMemPoolAttrUsedMemHigh, &value));
  ASSERT_OK(orMemPoolSetAttribute(pool, orMemPoolAttrReservedMemHigh, &value));
  EXPECT_EQ(attribute(pool, orMemPoolAttrUsedMemHigh), 0u);
  EXPECT_EQ(attribute(pool, orMemPoolAttrReservedMemHigh), 512u);
  ASSERT_OK(orDeviceSynchronize());
}

TEST(orMemPoolTrimTo, GivesBackFreedBlocksDownToTheBytes) {
  const Pool pool;
  set(pool, orMemPoolAttrReleaseThreshold, ~std::uint64_t{0});
  void* blocks[3] = {};
  for (void*& block : blocks) {
    ASSERT_OK(orMallocFromPoolAsync(&block, kSize, pool, nullptr));
  }
  for (void* block : blocks) {
    ASSERT_OK(orFreeAsync(block, nullptr));
  }
  ASSERT_OK(orMemPoolTrimTo(pool, kSize));
  EXPECT_EQ(reserved(pool), kSize);
  ASSERT_OK(orMemPoolTrimTo(pool, 0));
  EXPECT_EQ(reserved(pool), 0u);
}

TEST(orMemPoolTrimTo, LeavesWhatEnqueuedWorkUses) {
  const Pool pool;
  const Stream stream;
  void* block = nullptr;
  ASSERT_OK(orMallocFromPoolAsync(&block, kSize, pool, stream));
  {
    const Latch latch(stream);
    ASSERT_OK(orMemsetAsync(block, 1, kSize, stream));
    ASSERT_OK(orFreeAsync(block, stream));
    ASSERT_OK(orMemPoolTrimTo(pool, 0));
    EXPECT_EQ(reserved(pool), kSize);
  }
  EXPECT_OK(orStreamSynchronize(stream));
}

TEST(orMallocFromPoolAsync, PastMaxSizeIsMemoryAllocation) {
  const Pool pool(kSize);
  void* block = nullptr;
  void* second = nullptr;
  ASSERT_OK(orMallocFromPoolAsync(&block, kSize, pool, nullptr));
  EXPECT_EQ(
      orMallocFromPoolAsync(&second, 1, pool, nullptr),
      orErrorMemoryAllocation);
  EXPECT_MESSAGE("of its maxSize of 1048576 bytes");
  ASSERT_OK(orFreeAsync(block, nullptr));
  // What is too large to be reused makes room.
  ASSERT_OK(orMallocFromPoolAsync(&second, 1, pool, nullptr));
  ASSERT_OK(orFreeAsync(second, nullptr));
  ASSERT_OK(orDeviceSynchronize());
}

TEST(orMallocFromPoolAsync, TakesFromAPoolOfAnotherDevice) {
  const Pool pool(0, 1);
  const Stream stream;
  void* block = nullptr;
  ASSERT_OK(orMallocFromPoolAsync(&block, 64, pool, stream));
  orPointerAttributes attributes = OPENREG_POINTER_ATTRIBUTES_INIT;
  ASSERT_OK(orPointerGetAttributes(&attributes, block));
  EXPECT_EQ(attributes.device, 1);
  ASSERT_OK(orMemsetAsync(block, 1, 64, stream));
  ASSERT_OK(orFreeAsync(block, stream));
  ASSERT_OK(orStreamSynchronize(stream));
  const CurrentDevice current(1);
  ASSERT_OK(orDeviceSynchronize());
  EXPECT_EQ(reserved(pool), 0u);
}

TEST(orMemPoolCreate, OfAMissingDeviceIsInvalidDevice) {
  orMemPool_t pool = nullptr;
  const orMemPoolProps props{sizeof(props), 99, 0};
  EXPECT_EQ(orMemPoolCreate(&pool, &props), orErrorInvalidDevice);
  const orMemPoolProps good = OPENREG_MEM_POOL_PROPS_INIT;
  ASSERT_OK(orMemPoolCreate(&pool, &good));
  ASSERT_OK(orMemPoolDestroy(pool));
}

TEST(orMemPoolDestroy, LeavesItsBlocksUntilTheyAreFreed) {
  const std::size_t before = free_bytes();
  orMemPool_t pool = nullptr;
  const orMemPoolProps props = OPENREG_MEM_POOL_PROPS_INIT;
  ASSERT_OK(orMemPoolCreate(&pool, &props));
  void* block = nullptr;
  ASSERT_OK(orMallocFromPoolAsync(&block, kSize, pool, nullptr));
  ASSERT_OK(orMemPoolDestroy(pool));
  ASSERT_OK(orMemset(block, 1, kSize));
  EXPECT_EQ(first_byte(block), 1);
  EXPECT_EQ(
      orMallocFromPoolAsync(&block, kSize, pool, nullptr),
      orErrorInvalidHandle);
  EXPECT_EQ(block, nullptr);
  EXPECT_LT(free_bytes(), before);
  ASSERT_OK(orDeviceReset());
  EXPECT_EQ(free_bytes(), before);
}

TEST(orMemPoolDestroy, GivesItsFreedBlocksBack) {
  const std::size_t before = free_bytes();
  orMemPool_t pool = nullptr;
  const orMemPoolProps props = OPENREG_MEM_POOL_PROPS_INIT;
  ASSERT_OK(orMemPoolCreate(&pool, &props));
  void* first = nullptr;
  void* second = nullptr;
  ASSERT_OK(orMallocFromPoolAsync(&first, kSize, pool, nullptr));
  ASSERT_OK(orMallocFromPoolAsync(&second, kSize, pool, nullptr));
  ASSERT_OK(orFreeAsync(first, nullptr));
  ASSERT_OK(orMemPoolDestroy(pool));
  EXPECT_EQ(free_bytes(), before - kSize);
  ASSERT_OK(orFreeAsync(second, nullptr));
  EXPECT_EQ(free_bytes(), before);
}

TEST(orMemPoolDestroy, OfTheDefaultPoolIsInvalidValue) {
  EXPECT_EQ(orMemPoolDestroy(default_pool(1)), orErrorInvalidValue);
  EXPECT_MESSAGE("the default pool of device 1");
}

TEST(orDeviceGetDefaultMemPool, IsOnePoolForEachDevice) {
  orMemPool_t pool = nullptr;
  ASSERT_OK(orDeviceGetDefaultMemPool(&pool, 0));
  EXPECT_EQ(pool, default_pool(0));
  EXPECT_NE(pool, default_pool(1));
  EXPECT_EQ(orDeviceGetDefaultMemPool(&pool, 99), orErrorInvalidDevice);
}

TEST(orDeviceGetMemPool, IsTheDefaultOneAtFirst) {
  orMemPool_t pool = nullptr;
  ASSERT_OK(orDeviceGetMemPool(&pool, 1));
  EXPECT_EQ(pool, default_pool(1));
  EXPECT_EQ(orDeviceGetMemPool(&pool, -1), orErrorInvalidDevice);
}

TEST(orDeviceSetMemPool, IsWhereAllocationsComeFrom) {
  orMemPool_t current = nullptr;
  {
    const Pool pool;
    ASSERT_OK(orDeviceSetMemPool(0, pool));
    ASSERT_OK(orDeviceGetMemPool(&current, 0));
    EXPECT_EQ(current, pool);
    char* block = allocate(512, nullptr);
    EXPECT_EQ(used(pool), 512u);
    EXPECT_EQ(used(default_pool()), 0u);
    ASSERT_OK(orFree(block));
  }
  ASSERT_OK(orDeviceGetMemPool(&current, 0));
  EXPECT_EQ(current, default_pool());
}

TEST(orDeviceSetMemPool, OfAnotherDeviceIsInvalidValue) {
  EXPECT_EQ(orDeviceSetMemPool(0, default_pool(1)), orErrorInvalidValue);
  EXPECT_MESSAGE("pool is one of device 1, expected one of device 0");
  EXPECT_EQ(orDeviceSetMemPool(99, default_pool()), orErrorInvalidDevice);
}

TEST(orDeviceReset, EndsPoolsAndTheirBlocks) {
  const std::size_t before = free_bytes();
  orMemPool_t pool = nullptr;
  const orMemPoolProps props = OPENREG_MEM_POOL_PROPS_INIT;
  ASSERT_OK(orMemPoolCreate(&pool, &props));
  ASSERT_OK(orDeviceSetMemPool(0, pool));
  set(default_pool(), orMemPoolAttrReleaseThreshold, 1);
  char* block = allocate(kSize, nullptr);
  ASSERT_OK(orFreeAsync(allocate(kSize, nullptr), nullptr));
  ASSERT_OK(orDeviceReset());
  EXPECT_EQ(free_bytes(), before);
  EXPECT_EQ(orFree(block), orErrorInvalidValue);
  EXPECT_EQ(orMemPoolTrimTo(pool, 0), orErrorInvalidHandle);
  ASSERT_OK(orDeviceGetMemPool(&pool, 0));
  EXPECT_EQ(pool, default_pool());
  EXPECT_EQ(attribute(pool, orMemPoolAttrReleaseThreshold), 0u);
}

TEST(orIpcGetMemHandle, OfMemoryOfAPoolIsInvalidValue) {
  char* block = allocate(64, nullptr);
  orIpcMemHandle_t handle;
  EXPECT_EQ(orIpcGetMemHandle(&handle, block), orErrorInvalidValue);
  EXPECT_MESSAGE("is memory of a pool");
  ASSERT_OK(orFree(block));
}

TEST(orMallocAsync, ByManyThreadsGivesDistinctBlocks) {
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

using UnderMemoryCheck = FreshProcess;

TEST_F(UnderMemoryCheck, KernelThatTouchesWhatAPoolGaveBackFaults) {
  EXPECT_DEATH(
      {
        setenv("OPENREG_MEMORY_CHECK", "1", 1);
        char* block = allocate(64, nullptr);
        char* data = kernel_pointer(block);
        EXPECT_OK(orFreeAsync(block, nullptr));
        EXPECT_OK(orDeviceSynchronize());
        EXPECT_OK(orLaunchKernel(orStream_t(nullptr), [data] {
          *static_cast<volatile char*>(data) = 1;
        }));
        EXPECT_OK(orDeviceSynchronize());
      },
      "was freed");
}

} // namespace
