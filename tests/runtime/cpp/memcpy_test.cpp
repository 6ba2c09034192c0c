// SPDX-License-Identifier: BSD-3-Clause
// Copies: all directions, order, ranges.
#include "support.h"

#include <cstring>
#include <numeric>
#include <thread>

namespace {

std::vector<char> numbers(std::size_t size) {
  std::vector<char> result(size);
  std::iota(result.begin(), result.end(), char{0});
  return result;
}

TEST(orMemcpy, CopiesInAllDirections) {
  const auto in = numbers(100);
  const Block first(100);
  const CurrentDevice current(1);
  const Block second(100); // of another device
  std::vector<char> out(100);
  std::vector<char> again(100);
  ASSERT_OK(orMemcpy(first.get(), in.data(), 100, orMemcpyHostToDevice));
  ASSERT_OK(orMemcpy(second.get(), first.get(), 100, orMemcpyDeviceToDevice));
  ASSERT_OK(orMemcpy(out.data(), second.get(), 100, orMemcpyDeviceToHost));
  ASSERT_OK(orMemcpy(again.data(), out.data(), 100, orMemcpyHostToHost));
  EXPECT_EQ(again, in);
}

TEST(orMemcpy, DefaultKindLooksAtThePointers) {
  const auto in = numbers(10);
  const Block block(10);
  std::vector<char> out(10);
  ASSERT_OK(orMemcpy(block.get(), in.data(), 10, orMemcpyDefault));
  ASSERT_OK(orMemcpy(out.data(), block.get(), 10, orMemcpyDefault));
  EXPECT_EQ(out, in);
}

TEST(orMemcpy, OverlappingRangesAreCopiedLikeMemmove) {
  const auto in = numbers(10);
  const Block block(10);
  ASSERT_OK(orMemcpy(block.get(), in.data(), 10, orMemcpyHostToDevice));
  ASSERT_OK(orMemcpy(block.get(2), block.get(), 8, orMemcpyDeviceToDevice));
  std::vector<char> out(10);
  ASSERT_OK(orMemcpy(out.data(), block.get(), 10, orMemcpyDeviceToHost));
  EXPECT_EQ(out, (std::vector<char>{0, 1, 0, 1, 2, 3, 4, 5, 6, 7}));
}

TEST(orMemcpy, NothingToCopySucceeds) {
  EXPECT_OK(orMemcpy(nullptr, nullptr, 0, orMemcpyHostToDevice));
}

TEST(orMemcpy, PastTheEndNamesBlockAndRange) {
  const Block block(1024);
  std::vector<char> host(2048);
  EXPECT_EQ(
      orMemcpy(block.get(64), host.data(), 1000, orMemcpyHostToDevice),
      orErrorInvalidValue);
  EXPECT_MESSAGE("1000 bytes at offset 64 of dst");
  EXPECT_MESSAGE("block of 1024 bytes");
  EXPECT_MESSAGE("on device 0");
  EXPECT_EQ(
      orMemcpy(host.data(), block.get(), 1025, orMemcpyDeviceToHost),
      orErrorInvalidValue);
  EXPECT_MESSAGE("of src");
}

TEST(orMemcpy, SizeThatWrapsAroundIsInvalidValue) {
  const Block block(16);
  char host = 0;
  EXPECT_EQ(
      orMemcpy(&host, block.get(8), SIZE_MAX - 4, orMemcpyDeviceToHost),
      orErrorInvalidValue);
}

TEST(orMemcpy, FreedBlockIsInvalidValue) {
  void* pointer = nullptr;
  ASSERT_OK(orMalloc(&pointer, 16));
  ASSERT_OK(orFree(pointer));
  char host[16];
  EXPECT_EQ(
      orMemcpy(host, pointer, 16, orMemcpyDeviceToHost), orErrorInvalidValue);
  EXPECT_MESSAGE("not in a live block of device 0");
}

TEST(orMemcpy, PastTheEndOfPinnedMemoryIsInvalidValue) {
  const Block block(64);
  const PinnedBlock pinned(32);
  EXPECT_EQ(
      orMemcpy(block.get(), pinned.get() + 16, 17, orMemcpyHostToDevice),
      orErrorInvalidValue);
  EXPECT_MESSAGE("pinned block of 32 bytes");
}

TEST(orMemcpy, KindThatContradictsThePointersIsInvalidValue) {
  const Block block(16);
  char host[16] = {};
  EXPECT_EQ(
      orMemcpy(block.get(), host, 16, orMemcpyDeviceToHost),
      orErrorInvalidValue);
  EXPECT_MESSAGE("dst");
  EXPECT_EQ(
      orMemcpy(host, host, 16, orMemcpyDeviceToHost), orErrorInvalidValue);
  EXPECT_MESSAGE("is not a device pointer");
  EXPECT_EQ(
      orMemcpy(host, host, 16, static_cast<orMemcpyKind>(9)),
      orErrorInvalidValue);
  EXPECT_MESSAGE("kind 9");
}

TEST(orMemcpy, NullHostPointerIsInvalidValue) {
  const Block block(16);
  EXPECT_EQ(
      orMemcpy(block.get(), nullptr, 16, orMemcpyHostToDevice),
      orErrorInvalidValue);
  EXPECT_MESSAGE("src must not be null");
}

TEST(orMemcpyAsync, PinnedCopyReturnsBeforeItIsDone) {
  const Stream stream;
  const Block block(16);
  const PinnedBlock pinned(16);
  ASSERT_OK(orMemset(block.get(), 1, 16));
  std::memset(pinned.get(), 0, 16);
  Latch latch(stream);
  ASSERT_OK(orMemcpyAsync(
      pinned.get(), block.get(), 16, orMemcpyDeviceToHost, stream));
  EXPECT_EQ(pinned.get()[0], 0);
  latch.release();
  ASSERT_OK(orStreamSynchronize(stream));
  EXPECT_EQ(pinned.get()[15], 1);
}

TEST(orMemcpyAsync, PageableCopyIsDoneWhenTheCallReturns) {
  const Stream stream;
  const Block block(16);
  Latch latch(stream);
  ASSERT_OK(orMemsetAsync(block.get(), 3, 16, stream));
  std::thread releaser([&latch] { latch.release(); });
  char host[16] = {};
  ASSERT_OK(orMemcpyAsync(host, block.get(), 16, orMemcpyDeviceToHost, stream));
  EXPECT_EQ(host[15], 3);
  releaser.join();
}

TEST(orMemcpyAsync, RangeIsCheckedByTheCall) {
  const Stream stream;
  const Block first(16);
  const Block second(8);
  EXPECT_EQ(
      orMemcpyAsync(
          second.get(), first.get(), 16, orMemcpyDeviceToDevice, stream),
      orErrorInvalidValue);
  EXPECT_OK(orStreamSynchronize(stream));
}

TEST(orMemcpyAsync, DestroyedStreamIsInvalidHandle) {
  orStream_t stream = nullptr;
  ASSERT_OK(orStreamCreate(&stream));
  ASSERT_OK(orStreamDestroy(stream));
  EXPECT_EQ(
      orMemcpyAsync(nullptr, nullptr, 0, orMemcpyDefault, stream),
      orErrorInvalidHandle);
}

/// A block on another device.
class OtherBlock {
 public:
  explicit OtherBlock(std::size_t size) : current_(1), block_(size) {}
  std::byte* get(std::size_t offset = 0) const {
    return block_.get(offset);
  }

 private:
  CurrentDevice current_;
  Block block_;
};

TEST(orMemcpyPeer, CopiesBetweenDevicesAndWithinOne) {
  const auto in = numbers(16);
  const Block first(16);
  const OtherBlock second(16);
  const Block third(16);
  ASSERT_OK(orMemcpy(first.get(), in.data(), 16, orMemcpyHostToDevice));
  ASSERT_OK(orMemcpyPeer(second.get(), 1, first.get(), 0, 16));
  ASSERT_OK(orMemcpyPeer(second.get(8), 1, second.get(), 1, 8));
  std::vector<char> out(16);
  ASSERT_OK(orMemcpy(out.data(), second.get(), 16, orMemcpyDeviceToHost));
  EXPECT_EQ(
      out, (std::vector<char>{0, 1, 2, 3, 4, 5, 6, 7, 0, 1, 2, 3, 4, 5, 6, 7}));
  EXPECT_OK(orMemcpyPeer(nullptr, 0, nullptr, 1, 0));
}

TEST(orMemcpyPeer, PointerOfAnotherDeviceIsInvalidValue) {
  const Block first(16);
  const OtherBlock second(16);
  EXPECT_EQ(
      orMemcpyPeer(second.get(), 0, first.get(), 0, 16), orErrorInvalidValue);
  EXPECT_MESSAGE("belongs to device 1, not to device 0");
  EXPECT_EQ(
      orMemcpyPeer(second.get(), 1, first.get(), 1, 16), orErrorInvalidValue);
  EXPECT_MESSAGE("src");
}

TEST(orMemcpyPeer, PastTheEndIsInvalidValue) {
  const Block first(16);
  const OtherBlock second(8);
  EXPECT_EQ(
      orMemcpyPeer(second.get(), 1, first.get(), 0, 9), orErrorInvalidValue);
  EXPECT_MESSAGE("pass the end of the block of 8 bytes");
}

TEST(orMemcpyPeer, HostPointerIsInvalidValue) {
  const Block block(16);
  char host[16] = {};
  EXPECT_EQ(orMemcpyPeer(block.get(), 0, host, 0, 16), orErrorInvalidValue);
}

TEST(orMemcpyPeer, PastTheCountIsInvalidDevice) {
  const Block block(16);
  EXPECT_EQ(
      orMemcpyPeer(block.get(), 2, block.get(), 0, 1), orErrorInvalidDevice);
  EXPECT_EQ(
      orMemcpyPeer(block.get(), 0, block.get(), -1, 1), orErrorInvalidDevice);
}

TEST(orMemcpyPeerAsync, RunsInTheOrderOfTheStream) {
  const Stream stream;
  const Block first(4);
  const OtherBlock second(4);
  ASSERT_OK(orMemset(first.get(), 1, 4));
  ASSERT_OK(orMemset(second.get(), 0, 4));
  Latch latch(stream);
  ASSERT_OK(orMemsetAsync(first.get(), 2, 4, stream));
  ASSERT_OK(orMemcpyPeerAsync(second.get(), 1, first.get(), 0, 4, stream));
  char value = -1;
  ASSERT_OK(orMemcpy(&value, second.get(), 1, orMemcpyDeviceToHost));
  EXPECT_EQ(value, 0);
  latch.release();
  ASSERT_OK(orStreamSynchronize(stream));
  ASSERT_OK(orMemcpy(&value, second.get(3), 1, orMemcpyDeviceToHost));
  EXPECT_EQ(value, 2);
}

TEST(orMemcpyPeerAsync, PastTheCountIsInvalidDevice) {
  const Block block(16);
  EXPECT_EQ(
      orMemcpyPeerAsync(block.get(), 0, block.get(), 2, 1, nullptr),
      orErrorInvalidDevice);
}

} // namespace
