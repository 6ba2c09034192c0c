// SPDX-License-Identifier: BSD-3-Clause
// Host memory that is pinned after its allocation.
#include "support.h"

#include <array>
#include <cstdint>
#if !defined(_WIN32)
#include <sys/mman.h>
#endif

namespace {

orResourceUsage usage() {
  orResourceUsage result = OPENREG_RESOURCE_USAGE_INIT;
  EXPECT_OK(orGetResourceUsage(&result));
  return result;
}

orMemoryType type_of(const void* pointer) {
  orPointerAttributes attributes = OPENREG_POINTER_ATTRIBUTES_INIT;
  EXPECT_OK(orPointerGetAttributes(&attributes, pointer));
  return attributes.type;
}

/// Memory that is registered during the scope.
class Registered {
 public:
  explicit Registered(std::size_t size) : memory_(size) {
    EXPECT_OK(orHostRegister(memory_.data(), size, orHostRegisterDefault));
  }
  Registered(const Registered&) = delete;
  Registered& operator=(const Registered&) = delete;
  ~Registered() {
    EXPECT_OK(orHostUnregister(memory_.data()));
  }
  char* get(std::size_t offset = 0) {
    return memory_.data() + offset;
  }

 private:
  std::vector<char> memory_;
};

/// A block of orMallocHost.
class Pinned {
 public:
  explicit Pinned(std::size_t size) {
    EXPECT_OK(orMallocHost(&pointer_, size));
  }
  Pinned(const Pinned&) = delete;
  Pinned& operator=(const Pinned&) = delete;
  ~Pinned() {
    EXPECT_OK(orFreeHost(pointer_));
  }
  char* get(std::size_t offset = 0) const {
    return static_cast<char*>(pointer_) + offset;
  }

 private:
  void* pointer_ = nullptr;
};

TEST(orHostRegister, MakesCopiesAsynchronous) {
  const Stream stream;
  const Block block(64);
  ASSERT_OK(orMemset(block.get(), 3, 64));
  Registered memory(64);
  Latch latch(stream);
  ASSERT_OK(orMemcpyAsync(
      memory.get(), block.get(), 64, orMemcpyDeviceToHost, stream));
  EXPECT_EQ(memory.get()[63], 0) << "the stream is held";
  latch.release();
  ASSERT_OK(orStreamSynchronize(stream));
  EXPECT_EQ(memory.get()[63], 3);
}

TEST(orHostRegister, IsHostMemoryToPointerGetAttributes) {
  Registered memory(100);
  orPointerAttributes attributes = OPENREG_POINTER_ATTRIBUTES_INIT;
  ASSERT_OK(orPointerGetAttributes(&attributes, memory.get(99)));
  EXPECT_EQ(attributes.type, orMemoryTypeHost);
  EXPECT_EQ(attributes.pointer, memory.get());
  EXPECT_EQ(attributes.size, 100u);
  EXPECT_EQ(type_of(memory.get() + 100), orMemoryTypeUnmanaged);
}

TEST(orHostRegister, IsCountedApartFromBlocks) {
  const orResourceUsage before = usage();
  const Pinned block(10);
  const Registered memory(100);
  EXPECT_EQ(usage().hostRegistrations, before.hostRegistrations + 1);
  EXPECT_EQ(usage().hostBlocks, before.hostBlocks + 1);
  EXPECT_EQ(usage().hostBytes, before.hostBytes + 10);
}

TEST(orHostRegister, CopyPastTheEndIsInvalidValue) {
  const Block block(64);
  std::vector<char> memory(64);
  ASSERT_OK(orHostRegister(memory.data(), 32, 0));
  EXPECT_EQ(
      orMemcpy(block.get(), memory.data(), 33, orMemcpyHostToDevice),
      orErrorInvalidValue);
  EXPECT_MESSAGE("pass the end of the pinned block of 32 bytes");
  EXPECT_OK(orHostUnregister(memory.data()));
}

TEST(orHostRegister, PastTheEndOfAllAddressesIsInvalidValue) {
  std::array<char, 64> memory{};
  EXPECT_EQ(
      orHostRegister(memory.data(), SIZE_MAX, orHostRegisterDefault),
      orErrorInvalidValue);
  EXPECT_MESSAGE("size 18446744073709551615 at ptr");
  EXPECT_MESSAGE("exceeds the address space");
}

TEST(orHostRegister, RangesMayTouch) {
  std::vector<char> memory(64);
  ASSERT_OK(orHostRegister(memory.data() + 16, 16, 0));
  EXPECT_OK(orHostRegister(memory.data(), 16, 0));
  EXPECT_OK(orHostRegister(memory.data() + 32, 32, 0));
  for (const int offset : {0, 16, 32}) {
    EXPECT_OK(orHostUnregister(memory.data() + offset));
  }
}

TEST(orHostRegister, NullIsInvalidValue) {
  EXPECT_EQ(orHostRegister(nullptr, 1, 0), orErrorInvalidValue);
  EXPECT_MESSAGE("ptr must not be null");
}

TEST(orHostRegister, NothingIsInvalidValue) {
  char object = 0;
  EXPECT_EQ(orHostRegister(&object, 0, 0), orErrorInvalidValue);
  EXPECT_MESSAGE("size must not be 0");
}

TEST(orHostRegister, FlagsAreInvalidValue) {
  char object = 0;
  EXPECT_EQ(orHostRegister(&object, 1, 2), orErrorInvalidValue);
  EXPECT_MESSAGE("flags 2 are not known");
}

TEST(orHostRegister, DeviceMemoryIsInvalidValue) {
  const Block block(64);
  EXPECT_EQ(orHostRegister(block.get(), 64, 0), orErrorInvalidValue);
  EXPECT_MESSAGE("overlap device memory");
  EXPECT_EQ(
      orHostRegister(kernel_pointer(block.get()), 64, 0), orErrorInvalidValue);
  EXPECT_MESSAGE("overlap device memory");
  void* begin = nullptr;
  void* end = nullptr;
  std::ptrdiff_t distance = 0;
  ASSERT_OK(orGetAddressRange(&begin, &end, &distance));
  EXPECT_EQ(
      orHostRegister(static_cast<char*>(begin) - 1, 2, 0), orErrorInvalidValue);
  EXPECT_MESSAGE("overlap device memory");
}

TEST(orHostRegister, UnmappedMemoryIsInvalidValue) {
#if defined(_WIN32)
  GTEST_SKIP() << "the test maps memory with mmap()";
#else
  const std::size_t page = page_size();
  // Low addresses, if the system follows the hint: nothing else maps memory
  // there.
  void* pages = mmap(
      reinterpret_cast<void*>(std::uintptr_t{1} << 28),
      3 * page,
      PROT_READ | PROT_WRITE,
      MAP_PRIVATE | MAP_ANONYMOUS,
      -1,
      0);
  ASSERT_NE(pages, MAP_FAILED);
  auto* memory = static_cast<char*>(pages);
  ASSERT_EQ(munmap(memory + 2 * page, page), 0);
  EXPECT_EQ(orHostRegister(memory + page, page + 1, 0), orErrorInvalidValue);
  EXPECT_MESSAGE("not all of its " + std::to_string(page + 1) + " bytes are");
  EXPECT_EQ(orHostRegister(memory, SIZE_MAX, 0), orErrorInvalidValue);
  ASSERT_OK(orHostRegister(memory, 2 * page, 0));
  EXPECT_OK(orHostUnregister(memory));
  ASSERT_EQ(munmap(memory, 2 * page), 0);
#endif
}

TEST(orHostRegister, ManyPagesAreLookedAt) {
#if defined(_WIN32)
  GTEST_SKIP() << "the test maps memory with mmap()";
#else
  constexpr std::size_t kSize = std::size_t{64} << 20; // needs several probes
  void* pages = mmap(
      nullptr,
      kSize,
      PROT_NONE,
      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
      -1,
      0);
  ASSERT_NE(pages, MAP_FAILED);
  ASSERT_OK(orHostRegister(pages, kSize, 0));
  EXPECT_OK(orHostUnregister(pages));
  auto* last = static_cast<char*>(pages) + kSize - page_size();
  ASSERT_EQ(munmap(last, page_size()), 0);
  EXPECT_EQ(orHostRegister(pages, kSize, 0), orErrorInvalidValue);
  ASSERT_EQ(munmap(pages, kSize - page_size()), 0);
#endif
}

TEST(orHostRegister, OverlapIsHostMemoryAlreadyRegistered) {
  Registered memory(100);
  struct Range {
    std::size_t offset;
    std::size_t size;
  };
  for (const auto& [offset, size] :
       {Range{0, 100}, Range{0, 1}, Range{50, 10}, Range{99, 1}}) {
    EXPECT_EQ(
        orHostRegister(memory.get(offset), size, 0),
        orErrorHostMemoryAlreadyRegistered);
    EXPECT_MESSAGE("overlap the 100 bytes at");
  }
}

TEST(orHostRegister, OverlapFromTheFrontIsHostMemoryAlreadyRegistered) {
  std::vector<char> memory(64);
  ASSERT_OK(orHostRegister(memory.data() + 32, 16, 0));
  EXPECT_EQ(
      orHostRegister(memory.data(), 33, 0), orErrorHostMemoryAlreadyRegistered);
  EXPECT_EQ(
      orHostRegister(memory.data(), 64, 0), orErrorHostMemoryAlreadyRegistered);
  EXPECT_OK(orHostUnregister(memory.data() + 32));
}

TEST(orHostRegister, PinnedBlockIsHostMemoryAlreadyRegistered) {
  const Pinned block(64);
  EXPECT_EQ(
      orHostRegister(block.get(10), 1, 0), orErrorHostMemoryAlreadyRegistered);
  EXPECT_MESSAGE("which orMallocHost pinned");
}

TEST(orHostUnregister, EndsThePinning) {
  std::vector<char> memory(64);
  ASSERT_OK(orHostRegister(memory.data(), 64, 0));
  ASSERT_OK(orHostUnregister(memory.data()));
  EXPECT_EQ(type_of(memory.data()), orMemoryTypeUnmanaged);
}

TEST(orHostUnregister, WaitsForTheWorkOfAllDevices) {
  const CurrentDevice current(1);
  const Stream stream;
  const Block block(64);
  ASSERT_OK(orMemset(block.get(), 4, 64));
  std::vector<char> memory(64);
  ASSERT_OK(orHostRegister(memory.data(), 64, 0));
  Latch latch(stream);
  ASSERT_OK(orMemcpyAsync(
      memory.data(), block.get(), 64, orMemcpyDeviceToHost, stream));
  std::thread releaser([&latch] { latch.release(); });
  const CurrentDevice other(0);
  ASSERT_OK(orHostUnregister(memory.data()));
  EXPECT_EQ(memory[63], 4);
  releaser.join();
}

TEST(orHostUnregister, NullIsInvalidValue) {
  EXPECT_EQ(orHostUnregister(nullptr), orErrorInvalidValue);
}

TEST(orHostUnregister, DevicePointerIsInvalidValue) {
  const Block block(64);
  EXPECT_EQ(orHostUnregister(block.get()), orErrorInvalidValue);
  EXPECT_MESSAGE("device memory");
}

TEST(orHostUnregister, InsideARegistrationIsInvalidValue) {
  Registered memory(64);
  EXPECT_EQ(orHostUnregister(memory.get(1)), orErrorInvalidValue);
  EXPECT_MESSAGE("is not the start of the 64 bytes at");
}

TEST(orHostUnregister, TwiceIsHostMemoryNotRegistered) {
  char object = 0;
  ASSERT_OK(orHostRegister(&object, 1, 0));
  ASSERT_OK(orHostUnregister(&object));
  EXPECT_EQ(orHostUnregister(&object), orErrorHostMemoryNotRegistered);
  EXPECT_MESSAGE("it was unregistered already");
}

TEST(orHostUnregister, PinnedBlockIsHostMemoryNotRegistered) {
  const Pinned block(64);
  EXPECT_EQ(orHostUnregister(block.get()), orErrorHostMemoryNotRegistered);
  EXPECT_MESSAGE("call orFreeHost instead");
}

TEST(orHostUnregister, InAKernelIsNotPermittedAndKeepsThePinning) {
  const Stream stream;
  Registered memory(64);
  orError_t error = orSuccess;
  ASSERT_OK(
      orLaunchKernel(stream, [&] { error = orHostUnregister(memory.get()); }));
  ASSERT_OK(orStreamSynchronize(stream));
  EXPECT_EQ(error, orErrorNotPermitted);
  EXPECT_EQ(type_of(memory.get()), orMemoryTypeHost);
}

TEST(orHostUnregister, BehindAHeldStreamIsTimeoutAndKeepsThePinning) {
  const Stream stream;
  Registered memory(64);
  Latch latch(stream);
  ASSERT_OK(orDeviceSetLimit(orLimitWaitTimeout, 1));
  EXPECT_EQ(orHostUnregister(memory.get()), orErrorTimeout);
  EXPECT_EQ(type_of(memory.get()), orMemoryTypeHost);
  ASSERT_OK(orDeviceSetLimit(orLimitWaitTimeout, 0));
  latch.release();
}

TEST(orFreeHost, OfRegisteredMemoryIsInvalidValue) {
  Registered memory(64);
  EXPECT_EQ(orFreeHost(memory.get()), orErrorInvalidValue);
  EXPECT_MESSAGE("call orHostUnregister instead");
}

TEST(orFreeUnused, OfRegisteredMemoryIsInvalidValue) {
  Registered memory(64);
  EXPECT_EQ(orFreeUnused(memory.get()), orErrorInvalidValue);
  EXPECT_MESSAGE("call orHostUnregister instead");
}

TEST(orMallocHost, TakesAddressesOfMemoryThatWasFreedWhileRegistered) {
  constexpr std::size_t kSize = std::size_t{64} << 10;
  const std::size_t before = usage().hostRegistrations;
  void* freed = nullptr;
  ASSERT_OK(orMallocHost(&freed, kSize));
  ASSERT_OK(orFreeHost(freed));
  ASSERT_OK(orHostRegister(freed, kSize, 0)); // still mapped
  std::vector<void*> blocks;
  // Until the allocator reuses a part of it, if ever.
  while (blocks.size() < 100 && usage().hostRegistrations > before) {
    blocks.push_back(nullptr);
    ASSERT_OK(orMallocHost(&blocks.back(), 4096));
    EXPECT_EQ(type_of(blocks.back()), orMemoryTypeHost);
  }
  const bool again = usage().hostRegistrations == before;
  for (void* block : blocks) {
    EXPECT_OK(orFreeHost(block));
  }
  EXPECT_EQ(
      orHostUnregister(freed),
      again ? orErrorHostMemoryNotRegistered : orSuccess);
}

} // namespace
