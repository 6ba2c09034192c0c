// SPDX-License-Identifier: BSD-3-Clause
// Pointers: attributes, kernel pointers and host pointers.
#include "support.h"

namespace {

TEST(orGetAddressRange, HoldsThePointersOfAllDevices) {
  void* begin = nullptr;
  void* end = nullptr;
  std::ptrdiff_t distance = 0;
  ASSERT_OK(orGetAddressRange(&begin, &end, &distance));
  EXPECT_NE(distance, 0);
  for (const int device : {0, 1}) {
    const CurrentDevice current(device);
    const Block block(16);
    EXPECT_GE(block.get(), begin);
    EXPECT_LT(block.get(), end);
  }
  const PinnedBlock pinned(16);
  EXPECT_TRUE(pinned.get() < begin || pinned.get() >= end);
}

TEST(orPointerGetAttributes, NamesTheBlockAroundADevicePointer) {
  const CurrentDevice current(1);
  const Block block(1000);
  orPointerAttributes attributes = OPENREG_POINTER_ATTRIBUTES_INIT;
  ASSERT_OK(orPointerGetAttributes(&attributes, block.get(999)));
  EXPECT_EQ(attributes.type, orMemoryTypeDevice);
  EXPECT_EQ(attributes.device, 1);
  EXPECT_EQ(attributes.pointer, block.get());
  EXPECT_EQ(attributes.size, 1000u);
}

TEST(orPointerGetAttributes, NamesTheBlockAroundAPinnedPointer) {
  void* pointer = nullptr;
  ASSERT_OK(orMallocHost(&pointer, 100));
  orPointerAttributes attributes = OPENREG_POINTER_ATTRIBUTES_INIT;
  ASSERT_OK(
      orPointerGetAttributes(&attributes, static_cast<char*>(pointer) + 99));
  EXPECT_EQ(attributes.type, orMemoryTypeHost);
  EXPECT_EQ(attributes.pointer, pointer);
  ASSERT_OK(
      orPointerGetAttributes(&attributes, static_cast<char*>(pointer) + 100));
  EXPECT_EQ(attributes.type, orMemoryTypeUnmanaged);
  EXPECT_OK(orFreeHost(pointer));
}

TEST(orPointerGetAttributes, UnknownPointerIsUnmanaged) {
  int object = 0;
  orPointerAttributes attributes = OPENREG_POINTER_ATTRIBUTES_INIT;
  ASSERT_OK(orPointerGetAttributes(&attributes, &object));
  EXPECT_EQ(attributes.type, orMemoryTypeUnmanaged);
  EXPECT_EQ(attributes.device, -1);
  ASSERT_OK(orPointerGetAttributes(&attributes, nullptr));
  EXPECT_EQ(attributes.type, orMemoryTypeUnmanaged);
}

TEST(orPointerGetAttributes, FreedPointerIsUnmanaged) {
  void* pointer = nullptr;
  ASSERT_OK(orMalloc(&pointer, 64));
  ASSERT_OK(orFree(pointer));
  orPointerAttributes attributes = OPENREG_POINTER_ATTRIBUTES_INIT;
  ASSERT_OK(orPointerGetAttributes(&attributes, pointer));
  EXPECT_EQ(attributes.type, orMemoryTypeUnmanaged);
}

TEST(orGetKernelPointer, IsTheSameMemoryAtAFixedDistance) {
  void* begin = nullptr;
  void* end = nullptr;
  std::ptrdiff_t distance = 0;
  ASSERT_OK(orGetAddressRange(&begin, &end, &distance));
  for (const int device : {0, 1}) {
    const CurrentDevice current(device);
    const Block block(16);
    EXPECT_GE(block.get(), begin);
    EXPECT_LT(block.get(), end);
    EXPECT_EQ(kernel_pointer(block.get(3)) - block.get(3), distance);
    ASSERT_OK(orMemset(block.get(), 7, 16));
    char* data = kernel_pointer(reinterpret_cast<char*>(block.get()));
    ASSERT_OK(orLaunchKernel(nullptr, [data] { data[1] += 1; }));
    ASSERT_OK(orStreamSynchronize(nullptr));
    char host[2] = {};
    ASSERT_OK(orMemcpy(host, block.get(), 2, orMemcpyDeviceToHost));
    EXPECT_EQ(host[0], 7);
    EXPECT_EQ(host[1], 8);
  }
}

TEST(orGetKernelPointer, HostPointerIsInvalidValue) {
  int object = 0;
  void* result = nullptr;
  EXPECT_EQ(orGetKernelPointer(&result, &object), orErrorInvalidValue);
}

TEST(orMemoryUnprotect, OpensTheBlockToTheHost) {
  const Block block(16);
  ASSERT_OK(orMemset(block.get(), 5, 16));
  ASSERT_OK(orMemoryUnprotect(block.get()));
  EXPECT_EQ(block.get()[15], std::byte{5});
  EXPECT_OK(orMemoryProtect(block.get()));
}

TEST(orMemoryUnprotect, HostPointerIsInvalidValue) {
  int object = 0;
  EXPECT_EQ(orMemoryUnprotect(&object), orErrorInvalidValue);
  EXPECT_EQ(orMemoryProtect(&object), orErrorInvalidValue);
}

TEST(orMemoryProtect, KeepsAnotherOpenBlockOfThePageOpen) {
  const Block first(16);
  const Block second(16);
  ASSERT_OK(orMemset(second.get(), 6, 16));
  ASSERT_OK(orMemoryUnprotect(first.get()));
  ASSERT_OK(orMemoryUnprotect(second.get()));
  ASSERT_OK(orMemoryProtect(first.get()));
  EXPECT_EQ(second.get()[0], std::byte{6});
  EXPECT_OK(orMemoryProtect(second.get()));
}

} // namespace
