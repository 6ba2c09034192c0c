// SPDX-License-Identifier: BSD-3-Clause
// Pools: kept memory, counters, trimming, creation and destruction.
#include "memory_pool.h"

#include <cstdint>

namespace {

TEST(orStreamSynchronize, ReleasesMemoryBeyondTheReleaseThreshold) {
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

TEST(orMemPoolGetAttribute, CountsReservedAndUsedMemory) {
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

TEST(orMemPoolSetAttribute, ResetsHighWatermarksToCurrentValues) {
  const Pool pool;
  std::uint64_t value = 1;
  EXPECT_EQ(
      orMemPoolSetAttribute(pool, orMemPoolAttrUsedMemHigh, &value),
      orErrorInvalidValue);
  EXPECT_MESSAGE("value 1 cannot be set as a high watermark: expected 0");
  EXPECT_EQ(
      orMemPoolSetAttribute(pool, orMemPoolAttrUsedMemCurrent, &value),
      orErrorInvalidValue);
  EXPECT_MESSAGE("attr 3 is read-only");
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

TEST(orMemPoolTrimTo, ReleasesFreedBlocksDownToTheBytes) {
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

TEST(orMemPoolTrimTo, KeepsBlocksOfEnqueuedWork) {
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
  // A block that is too large for reuse is released.
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

TEST(orMemPoolDestroy, ReleasesItsFreedBlocks) {
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
  EXPECT_MESSAGE("pool belongs to device 1: expected a pool of device 0");
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
  EXPECT_MESSAGE("belongs to a memory pool");
  ASSERT_OK(orFree(block));
}

using UnderMemoryCheck = FreshProcess;

TEST_F(UnderMemoryCheck, KernelThatAccessesReleasedPoolMemoryFaults) {
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
