// SPDX-License-Identifier: BSD-3-Clause
// 2D copies and memsets, also of pinned memory.
#include "support.h"

#include <algorithm>
#include <cstdint>
#include <numeric>

namespace {

constexpr std::size_t kWidth = 3;
constexpr std::size_t kHeight = 4;
constexpr std::size_t kDense = kWidth * kHeight;
constexpr std::size_t kPitch = 8;
constexpr std::size_t kSpan = kPitch * (kHeight - 1) + kWidth;

std::vector<char> numbers() {
  std::vector<char> result(kDense);
  std::iota(result.begin(), result.end(), char{1});
  return result;
}

/// The same values as rows of kPitch bytes, padded with `padding`.
std::vector<char> pitched(char padding) {
  std::vector<char> result(kSpan, padding);
  for (std::size_t i = 0; i < kDense; ++i) {
    result[i / kWidth * kPitch + i % kWidth] = static_cast<char>(i + 1);
  }
  return result;
}

std::vector<char> bytes_of(const Block& block, std::size_t size) {
  std::vector<char> result(size);
  EXPECT_OK(orMemcpy(result.data(), block.get(), size, orMemcpyDeviceToHost));
  return result;
}

TEST(orMemcpy2D, LeavesThePaddingAlone) {
  const auto in = numbers();
  const Block block(kSpan); // without padding after the last row
  ASSERT_OK(orMemset(block.get(), 9, kSpan));
  ASSERT_OK(orMemcpy2D(
      block.get(),
      kPitch,
      in.data(),
      kWidth,
      kWidth,
      kHeight,
      orMemcpyHostToDevice));
  EXPECT_EQ(bytes_of(block, kSpan), pitched(9));
}

TEST(orMemcpy2D, CopiesInAllDirections) {
  const auto in = numbers();
  const Block first(kSpan);
  const CurrentDevice current(1);
  const Block second(kDense);
  std::vector<char> out(kSpan, 7);
  std::vector<char> again(kDense);
  ASSERT_OK(orMemcpy2D(
      first.get(),
      kPitch,
      in.data(),
      kWidth,
      kWidth,
      kHeight,
      orMemcpyHostToDevice));
  ASSERT_OK(orMemcpy2D(
      second.get(),
      kWidth,
      first.get(),
      kPitch,
      kWidth,
      kHeight,
      orMemcpyDeviceToDevice));
  ASSERT_OK(orMemcpy2D(
      out.data(),
      kPitch,
      second.get(),
      kWidth,
      kWidth,
      kHeight,
      orMemcpyDefault));
  EXPECT_EQ(out, pitched(7));
  ASSERT_OK(orMemcpy2D(
      again.data(),
      kWidth,
      out.data(),
      kPitch,
      kWidth,
      kHeight,
      orMemcpyHostToHost));
  EXPECT_EQ(again, in);
}

TEST(orMemcpy2D, PitchBelowTheWidthIsInvalidValueAndNamesBoth) {
  const Block block(64);
  char host[64] = {};
  EXPECT_EQ(
      orMemcpy2D(block.get(), 7, host, 8, 8, 2, orMemcpyHostToDevice),
      orErrorInvalidValue);
  EXPECT_MESSAGE("dpitch 7 is less than the width 8");
  EXPECT_EQ(
      orMemcpy2D(block.get(), 8, host, 6, 8, 2, orMemcpyHostToDevice),
      orErrorInvalidValue);
  EXPECT_MESSAGE("spitch 6 is less than the width 8");
}

TEST(orMemcpy2D, EachByteMustBeInTheBlock) {
  const Block block(kSpan);
  char host[64] = {};
  EXPECT_EQ(
      orMemcpy2D(
          block.get(1),
          kPitch,
          host,
          kPitch,
          kWidth,
          kHeight,
          orMemcpyHostToDevice),
      orErrorInvalidValue);
  EXPECT_MESSAGE("27 bytes at offset 1 of dst pass the end");
  EXPECT_EQ(
      orMemcpy2D(
          host,
          kWidth,
          block.get(),
          kPitch,
          kWidth,
          kHeight + 1,
          orMemcpyDeviceToHost),
      orErrorInvalidValue);
  EXPECT_MESSAGE("35 bytes at offset 0 of src pass the end");
}

TEST(orMemcpy2D, PitchTimesHeightThatWrapsAroundIsInvalidValue) {
  const Block block(64);
  char host[64] = {};
  EXPECT_EQ(
      orMemcpy2D(
          block.get(), SIZE_MAX / 2, host, 8, 8, 4, orMemcpyHostToDevice),
      orErrorInvalidValue);
  EXPECT_MESSAGE("dpitch");
  EXPECT_MESSAGE("height 4");
  EXPECT_EQ(
      orMemcpy2D(block.get(), 8, host, SIZE_MAX, 8, 2, orMemcpyHostToDevice),
      orErrorInvalidValue);
  EXPECT_MESSAGE("spitch");
}

TEST(orMemcpy2D, NothingToCopySucceeds) {
  EXPECT_OK(orMemcpy2D(nullptr, 8, nullptr, 8, 0, 3, orMemcpyDefault));
  EXPECT_OK(orMemcpy2D(nullptr, 8, nullptr, 8, 8, 0, orMemcpyDefault));
}

TEST(orMemcpy2D, WaitsForTheDefaultStream) {
  const Block block(kDense);
  ASSERT_OK(orMemset(block.get(), 0, kDense));
  char* data = kernel_pointer(reinterpret_cast<char*>(block.get()));
  std::vector<char> out(kSpan);
  Latch latch(nullptr);
  ASSERT_OK(orLaunchKernel(orStream_t(nullptr), [data] {
    std::iota(data, data + kDense, char{1});
  }));
  std::thread releaser([&latch] { latch.release(); });
  EXPECT_OK(orMemcpy2D(
      out.data(),
      kPitch,
      block.get(),
      kWidth,
      kWidth,
      kHeight,
      orMemcpyDeviceToHost));
  releaser.join();
  EXPECT_EQ(out, pitched(0));
}

TEST(orMemcpy2DAsync, PinnedCopyRunsInTheOrderOfTheStream) {
  const PinnedBlock pinned(kSpan);
  const Block block(kDense);
  const auto in = numbers();
  ASSERT_OK(orMemcpy(block.get(), in.data(), kDense, orMemcpyHostToDevice));
  std::fill_n(pinned.get(), kSpan, char{5});
  const Stream stream;
  {
    const Latch latch(stream);
    ASSERT_OK(orMemcpy2DAsync(
        pinned.get(),
        kPitch,
        block.get(),
        kWidth,
        kWidth,
        kHeight,
        orMemcpyDeviceToHost,
        stream));
    EXPECT_EQ(pinned.get()[0], 5);
  }
  ASSERT_OK(orStreamSynchronize(stream));
  EXPECT_EQ(std::vector<char>(pinned.get(), pinned.get() + kSpan), pitched(5));
}

TEST(orMemcpy2DAsync, PageableCopyIsDoneWhenTheCallReturns) {
  const Block block(kDense);
  const auto in = numbers();
  ASSERT_OK(orMemcpy(block.get(), in.data(), kDense, orMemcpyHostToDevice));
  std::vector<char> out(kSpan, 5);
  const Stream stream;
  ASSERT_OK(orMemcpy2DAsync(
      out.data(),
      kPitch,
      block.get(),
      kWidth,
      kWidth,
      kHeight,
      orMemcpyDeviceToHost,
      stream));
  EXPECT_EQ(out, pitched(5));
}

TEST(orMemcpy2DAsync, NothingToCopySucceeds) {
  EXPECT_OK(
      orMemcpy2DAsync(nullptr, 8, nullptr, 8, 0, 3, orMemcpyDefault, nullptr));
}

TEST(orMemcpy2DAsync, IsACopyToInjectedFailures) {
  const Block block(64);
  const InjectedFailure failure({.site = orFailureCopy});
  ASSERT_OK(orMemcpy2DAsync(
      block.get(), 4, block.get(32), 8, 4, 2, orMemcpyDeviceToDevice, nullptr));
  EXPECT_EQ(orStreamSynchronize(nullptr), orErrorLaunchFailure);
  EXPECT_EQ(failure.hits(), 1u);
}

TEST(orMemset, SetsPinnedMemory) {
  const PinnedBlock pinned(8);
  std::fill_n(pinned.get(), 8, char{1});
  ASSERT_OK(orMemset(pinned.get() + 2, 2, 3));
  EXPECT_EQ(
      std::vector<char>(pinned.get(), pinned.get() + 8),
      (std::vector<char>{1, 1, 2, 2, 2, 1, 1, 1}));
  EXPECT_EQ(orMemset(pinned.get() + 4, 0, 5), orErrorInvalidValue);
  EXPECT_MESSAGE("pass the end of the pinned block of 8 bytes");
}

TEST(orMemset, OfPinnedMemoryWaitsForTheDefaultStreamOfTheCurrentDevice) {
  const CurrentDevice current(1);
  const PinnedBlock pinned(1);
  char* byte = pinned.get();
  Latch latch(nullptr);
  ASSERT_OK(orLaunchKernel(orStream_t(nullptr), [byte] { *byte = 1; }));
  std::thread releaser([&latch] { latch.release(); });
  EXPECT_OK(orMemset(byte, 2, 1));
  releaser.join();
  EXPECT_EQ(*byte, 2);
}

TEST(orMemset, OfPageableMemoryIsInvalidValueAndNamesAcceptedMemory) {
  char host[8] = {};
  EXPECT_EQ(orMemset(host, 1, 8), orErrorInvalidValue);
  EXPECT_MESSAGE("orMalloc, orMallocHost or orHostRegister");
  EXPECT_EQ(orMemsetAsync(host, 1, 8, nullptr), orErrorInvalidValue);
  EXPECT_EQ(host[0], 0);
}

TEST(orMemsetAsync, SetsRegisteredMemoryInTheOrderOfTheStream) {
  char host[8] = {};
  ASSERT_OK(orHostRegister(host, 8, 0));
  const Stream stream;
  {
    const Latch latch(stream);
    ASSERT_OK(orMemsetAsync(host + 1, 3, 7, stream));
    EXPECT_EQ(host[1], 0);
  }
  ASSERT_OK(orStreamSynchronize(stream));
  EXPECT_EQ(host[0], 0);
  EXPECT_EQ(host[7], 3);
  EXPECT_EQ(orMemsetAsync(host + 1, 3, 8, stream), orErrorInvalidValue);
  ASSERT_OK(orHostUnregister(host));
}

} // namespace
