// SPDX-License-Identifier: BSD-3-Clause
// Memory: allocation, capacity, and release to the system.
#include "returned_pages.h"
#include "support.h"

#include <atomic>
#include <cstdint>
#include <thread>

namespace {

/// More freed memory than a device keeps.
constexpr std::size_t kMoreThanKept = std::size_t{128} << 20;

/// Makes the device release the freed memory that it keeps.
[[maybe_unused]] void drop_kept_memory() {
  const Block block(kMoreThanKept);
}

TEST(orMalloc, ZeroBytesGiveANullPointer) {
  int object = 0;
  void* pointer = &object;
  ASSERT_OK(orMalloc(&pointer, 0));
  EXPECT_EQ(pointer, nullptr);
  EXPECT_OK(orFree(pointer));
}

TEST(orMalloc, IsAligned) {
  const Block first(1);
  const Block second(1);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(first.get()) % 512, 0u);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(second.get()) % 512, 0u);
}

TEST(orMalloc, NullIsInvalidValue) {
  EXPECT_EQ(orMalloc(nullptr, 1), orErrorInvalidValue);
}

TEST(orMalloc, PastTheCapacityIsMemoryAllocation) {
  const Block used(1 << 20);
  const std::size_t free = free_bytes();
  void* pointer = nullptr;
  EXPECT_EQ(orMalloc(&pointer, free + 1), orErrorMemoryAllocation);
  EXPECT_EQ(pointer, nullptr);
  EXPECT_MESSAGE("device 0 cannot allocate " + std::to_string(free + 1));
  EXPECT_MESSAGE(std::to_string(free) + " of its");
  EXPECT_EQ(orMalloc(&pointer, SIZE_MAX), orErrorMemoryAllocation);
  const Block rest(free);
  EXPECT_EQ(free_bytes(), 0u);
}

TEST(orMalloc, FragmentationDoesNotFailAllocationsWithinTheCapacity) {
  const std::size_t unit = free_bytes() / 16;
  std::vector<void*> blocks(16);
  for (auto& block : blocks) {
    ASSERT_OK(orMalloc(&block, unit));
  }
  for (std::size_t i = 0; i < 16; i += 2) {
    ASSERT_OK(orFree(blocks[i]));
    blocks[i] = nullptr;
  }
  {
    const Block large(8 * unit); // no hole is larger than one unit
  }
  for (void* block : blocks) {
    EXPECT_OK(orFree(block));
  }
}

TEST(orMalloc, TakesFromTheCurrentDevice) {
  const std::size_t before = free_bytes();
  const CurrentDevice current(1);
  const std::size_t other = free_bytes();
  const Block block(1024);
  EXPECT_EQ(free_bytes(), other - 1024);
  const CurrentDevice back(0);
  EXPECT_EQ(free_bytes(), before);
}

TEST(orMalloc, ManyThreadsGetDistinctBlocks) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([t] {
      for (int i = 0; i < 100; ++i) {
        const Block block(4096);
        EXPECT_OK(orMemset(block.get(), t, 4096));
        char last = -1;
        EXPECT_OK(orMemcpy(&last, block.get(4095), 1, orMemcpyDeviceToHost));
        EXPECT_EQ(last, t);
      }
    });
  }
  for (auto& thread : threads) {
    thread.join();
  }
}

TEST(orFree, TwiceIsInvalidValue) {
  void* pointer = nullptr;
  ASSERT_OK(orMalloc(&pointer, 64));
  ASSERT_OK(orFree(pointer));
  EXPECT_EQ(orFree(pointer), orErrorInvalidValue);
  EXPECT_MESSAGE("freed already");
}

TEST(orFree, InsideABlockIsInvalidValue) {
  const Block block(4096);
  EXPECT_EQ(orFree(block.get(1024)), orErrorInvalidValue);
  EXPECT_MESSAGE("not the start of a live block");
  EXPECT_MESSAGE("it is inside of the block of 4096 bytes at 0x");
}

TEST(orFree, HostPointerIsInvalidValue) {
  int object = 0;
  EXPECT_EQ(orFree(&object), orErrorInvalidValue);
  EXPECT_MESSAGE("is not a device pointer");
}

TEST(orFree, WaitsForTheWorkOfTheDevice) {
  const Stream stream;
  void* pointer = nullptr;
  ASSERT_OK(orMalloc(&pointer, 64));
  char* data = kernel_pointer(static_cast<char*>(pointer));
  Latch latch(stream);
  std::atomic<bool> ran{false};
  ASSERT_OK(orLaunchKernel(stream, [&ran, data] {
    *data = 1;
    ran = true;
  }));
  std::thread releaser([&latch] { latch.release(); });
  ASSERT_OK(orFree(pointer));
  EXPECT_TRUE(ran);
  releaser.join();
}

TEST(orFree, LeavesAFailureForTheNextWait) {
  const Stream stream;
  {
    const Block block(64);
    ASSERT_OK(
        orLaunchKernel(stream, [] { throw std::runtime_error("broken"); }));
  }
  EXPECT_EQ(orStreamSynchronize(stream), orErrorLaunchFailure);
}

TEST(orFree, InAKernelIsNotPermittedAndKeepsTheBlock) {
  const Stream stream;
  const Block block(64);
  ASSERT_OK(orLaunchKernel(stream, [&block] {
    EXPECT_EQ(orFree(block.get()), orErrorNotPermitted);
  }));
  ASSERT_OK(orStreamSynchronize(stream));
}

TEST(orFree, ReleasesMemoryToTheSystem) {
  NEEDS_PAGES_TO_RETURN();
  constexpr std::size_t kSize = kMoreThanKept;
  drop_kept_memory();
  const std::size_t before = resident_shared();
  {
    const Block block(kSize);
    EXPECT_LT(resident_shared(), before + kSize / 8) << "untouched is free";
    ASSERT_OK(orMemset(block.get(), 1, kSize));
    EXPECT_GE(resident_shared(), before + kSize / 8 * 7);
  }
  EXPECT_LT(resident_shared(), before + kSize / 8);
}

TEST(orFree, KeepsALittleMemoryForTheNextBlock) {
  NEEDS_PAGES_TO_RETURN();
  constexpr std::size_t kSize = std::size_t{32} << 20;
  drop_kept_memory();
  const std::size_t before = resident_shared();
  for (int i = 0; i < 100; ++i) {
    {
      const Block block(kSize);
      ASSERT_OK(orMemset(block.get(), 1, kSize));
    }
    EXPECT_GE(resident_shared(), before + kSize / 8 * 7);
    EXPECT_LT(resident_shared(), before + kSize / 8 * 9);
  }
  drop_kept_memory();
  EXPECT_LT(resident_shared(), before + kSize / 8);
}

TEST(orFree, ManySmallBlocksGoBackToTheSystem) {
  NEEDS_PAGES_TO_RETURN();
  constexpr std::size_t kSize = 64 << 10;
  drop_kept_memory();
  const std::size_t before = resident_shared();
  std::vector<void*> blocks(4096);
  for (auto& block : blocks) {
    ASSERT_OK(orMalloc(&block, kSize));
    ASSERT_OK(orMemset(block, 1, kSize));
  }
  const std::size_t peak = resident_shared();
  EXPECT_GE(peak, before + (std::size_t{240} << 20));
  for (void* block : blocks) {
    ASSERT_OK(orFree(block));
  }
  EXPECT_LE(resident_shared(), before + (std::size_t{64} << 20));
  drop_kept_memory();
  EXPECT_LT(resident_shared(), before + (std::size_t{8} << 20));
}

TEST(orFreeUnused, InAKernelFreesAtOnce) {
  const Stream stream;
  void* pointer = nullptr;
  ASSERT_OK(orMalloc(&pointer, 64));
  orError_t error = orErrorUnknown;
  ASSERT_OK(orLaunchKernel(stream, [&] { error = orFreeUnused(pointer); }));
  ASSERT_OK(orStreamSynchronize(stream));
  EXPECT_OK(error);
  EXPECT_EQ(orFree(pointer), orErrorInvalidValue);
}

TEST(orFreeUnused, NullSucceeds) {
  EXPECT_OK(orFreeUnused(nullptr));
}

TEST(orFreeUnused, TwiceIsInvalidValue) {
  void* pointer = nullptr;
  ASSERT_OK(orMalloc(&pointer, 64));
  ASSERT_OK(orFreeUnused(pointer));
  EXPECT_EQ(orFreeUnused(pointer), orErrorInvalidValue);
  EXPECT_MESSAGE("freed already");
}

TEST(orFreeUnused, HostPointerIsInvalidValue) {
  int object = 0;
  EXPECT_EQ(orFreeUnused(&object), orErrorInvalidValue);
  EXPECT_MESSAGE("is not the start of a live pinned block");
}

TEST(orMemset, FillsTheRangeOnly) {
  const Block block(8);
  ASSERT_OK(orMemset(block.get(), 1, 8));
  ASSERT_OK(orMemset(block.get(2), 0x1ff, 3));
  std::vector<unsigned char> host(8);
  ASSERT_OK(orMemcpy(host.data(), block.get(), 8, orMemcpyDeviceToHost));
  EXPECT_EQ(host, (std::vector<unsigned char>{1, 1, 255, 255, 255, 1, 1, 1}));
}

TEST(orMemset, PastTheEndIsInvalidValue) {
  const Block block(8);
  EXPECT_EQ(orMemset(block.get(4), 0, 5), orErrorInvalidValue);
  EXPECT_MESSAGE("5 bytes at offset 4 of devPtr");
  EXPECT_OK(orMemset(block.get(4), 0, 4));
  EXPECT_OK(orMemset(nullptr, 0, 0));
}

TEST(orMemsetAsync, RunsInTheOrderOfTheStream) {
  const Stream stream;
  const Block block(4);
  ASSERT_OK(orMemset(block.get(), 1, 4));
  Latch latch(stream);
  ASSERT_OK(orMemsetAsync(block.get(), 2, 4, stream));
  char value = 0;
  ASSERT_OK(orMemcpy(&value, block.get(), 1, orMemcpyDeviceToHost));
  EXPECT_EQ(value, 1);
  latch.release();
  ASSERT_OK(orStreamSynchronize(stream));
  ASSERT_OK(orMemcpy(&value, block.get(), 1, orMemcpyDeviceToHost));
  EXPECT_EQ(value, 2);
}

TEST(orMallocHost, IsAligned) {
  const std::size_t page = page_size();
  for (const auto& [size, alignment] :
       {std::pair<std::size_t, std::size_t>{1, 64},
        {page - 1, 64},
        {page, page},
        {page * 256, page}}) {
    void* pointer = nullptr;
    ASSERT_OK(orMallocHost(&pointer, size));
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(pointer) % alignment, 0u);
    ASSERT_OK(orFreeHost(pointer));
  }
}

TEST(orMallocHost, IsMemoryTheHostCanUse) {
  void* pointer = nullptr;
  ASSERT_OK(orMallocHost(&pointer, 128));
  static_cast<char*>(pointer)[127] = 1;
  EXPECT_OK(orFreeHost(pointer));
  EXPECT_EQ(orFreeHost(pointer), orErrorInvalidValue);
  ASSERT_OK(orMallocHost(&pointer, 0));
  EXPECT_EQ(pointer, nullptr);
  EXPECT_OK(orFreeHost(nullptr));
}

TEST(orFreeHost, WaitsForTheWorkOfAllDevices) {
  const CurrentDevice current(1);
  const Stream stream;
  void* pointer = nullptr;
  ASSERT_OK(orMallocHost(&pointer, 64));
  auto* data = static_cast<char*>(pointer);
  Latch latch(stream);
  std::atomic<bool> ran{false};
  ASSERT_OK(orLaunchKernel(stream, [&ran, data] {
    *data = 1;
    ran = true;
  }));
  std::thread releaser([&latch] { latch.release(); });
  const CurrentDevice other(0);
  EXPECT_OK(orFreeHost(pointer));
  EXPECT_TRUE(ran);
  releaser.join();
}

TEST(orFreeHost, PointerToOtherMemoryIsInvalidValue) {
  const Block block(64);
  const PinnedBlock pinned(64);
  int object = 0;
  EXPECT_EQ(orFreeHost(&object), orErrorInvalidValue);
  EXPECT_EQ(orFreeHost(block.get()), orErrorInvalidValue);
  EXPECT_EQ(orFreeHost(pinned.get() + 1), orErrorInvalidValue);
  EXPECT_MESSAGE("is not the start of a live pinned block");
}

TEST(orFreeHost, InAKernelIsNotPermitted) {
  const PinnedBlock pinned(64);
  const Stream stream;
  ASSERT_OK(orLaunchKernel(stream, [&pinned] {
    EXPECT_EQ(orFreeHost(pinned.get()), orErrorNotPermitted);
  }));
  ASSERT_OK(orStreamSynchronize(stream));
}

TEST(orMemGetInfo, CountsTheBytesOfTheCurrentDevice) {
  std::size_t free = 0;
  std::size_t total = 0;
  ASSERT_OK(orMemGetInfo(&free, &total));
  EXPECT_EQ(total, device_memory());
  const Block block(4096);
  std::size_t less = 0;
  ASSERT_OK(orMemGetInfo(&less, &total));
  EXPECT_EQ(less, free - 4096);
}

} // namespace
