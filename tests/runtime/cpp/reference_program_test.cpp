// SPDX-License-Identifier: BSD-3-Clause
// Programs that use the header: one in C, and one that PyTorch's in-tree
// reference runs.
#include "support.h"

#include <algorithm>
#include <numeric>

extern "C" int use_from_c(void);

namespace {

TEST(Header, WorksFromC) {
  EXPECT_EQ(use_from_c(), 0);
}

TEST(Header, HasTheTypeOfEventFlags) {
  const orEventFlags flags = orEventDisableTiming;
  const Event event(flags);
  EXPECT_OK(orEventQuery(event));
}

// The reference makes a block accessible to the host during a kernel.
TEST(Header, RunsAProgramOfTheReference) {
  constexpr int kCount = 1000;
  std::vector<int> host(kCount);
  std::iota(host.begin(), host.end(), 0);
  void* memory = nullptr;
  ASSERT_OK(orMalloc(&memory, kCount * sizeof(int)));
  int* data = static_cast<int*>(memory);
  orStream_t stream = nullptr;
  ASSERT_OK(orStreamCreate(&stream));
  orEvent_t event = nullptr;
  ASSERT_OK(orEventCreate(&event));

  ASSERT_OK(orMemcpyAsync(
      data, host.data(), kCount * sizeof(int), orMemcpyHostToDevice, stream));
  ASSERT_OK(orLaunchKernel(
      stream,
      [](int* values, int count, int factor) {
        EXPECT_OK(orMemoryUnprotect(values));
        std::for_each(
            values, values + count, [factor](int& v) { v *= factor; });
        EXPECT_OK(orMemoryProtect(values));
      },
      data,
      kCount,
      3));
  ASSERT_OK(orEventRecord(event, stream));
  ASSERT_OK(orEventSynchronize(event));
  ASSERT_OK(
      orMemcpy(host.data(), data, kCount * sizeof(int), orMemcpyDeviceToHost));

  for (int i = 0; i < kCount; ++i) {
    ASSERT_EQ(host[static_cast<std::size_t>(i)], 3 * i);
  }
  EXPECT_OK(orEventDestroy(event));
  EXPECT_OK(orStreamDestroy(stream));
  EXPECT_OK(orFree(memory));
}

} // namespace
