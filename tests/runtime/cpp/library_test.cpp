// SPDX-License-Identifier: BSD-3-Clause
// The library in this process: version, first use, held resources.
#include "support.h"

#if !defined(_WIN32)
#include <sys/resource.h>
#endif

namespace {

TEST(orRuntimeGetVersion, IsTheVersionOfThePackage) {
  int version = 0;
  ASSERT_OK(orRuntimeGetVersion(&version));
  char text[32];
  std::snprintf(
      text,
      sizeof(text),
      "%d.%d.%d",
      version / 10000,
      version / 100 % 100,
      version % 100);
  EXPECT_STREQ(text, OPENREG_VERSION);
}

TEST(orInit, PutsTheDevicesInUse) {
  ASSERT_OK(orInit());
  int initialized = 0;
  ASSERT_OK(orIsInitialized(&initialized));
  EXPECT_EQ(initialized, 1);
}

TEST(orInit, WithoutFilesIsMemoryAllocationAndCanBeTriedAgain) {
#if defined(_WIN32)
  GTEST_SKIP() << "Windows does not limit open files";
#else
  use_fresh_processes();
  EXPECT_EXIT(
      {
        setenv("OPENREG_DEVICE_COUNT", "64", 1);
        setenv("OPENREG_DEVICE_MEMORY", "64MiB", 1);
        rlimit limit;
        getrlimit(RLIMIT_NOFILE, &limit);
        const rlim_t enough = limit.rlim_cur;
        limit.rlim_cur = 32;
        setrlimit(RLIMIT_NOFILE, &limit);
        for (int i = 0; i < 10; ++i) {
          EXPECT_EQ(orInit(), orErrorMemoryAllocation) << i;
        }
        limit.rlim_cur = enough;
        setrlimit(RLIMIT_NOFILE, &limit);
        report(orInit(), orSuccess);
      },
      testing::ExitedWithCode(0),
      "orSuccess");
#endif
}

orResourceUsage usage_now() {
  orResourceUsage usage = OPENREG_RESOURCE_USAGE_INIT;
  EXPECT_OK(orGetResourceUsage(&usage));
  return usage;
}

TEST(orIsInitialized, NotBeforeADeviceIsUsed) {
  use_fresh_processes();
  EXPECT_EXIT(
      {
        int count = 0;
        EXPECT_OK(orGetDeviceCount(&count));
        EXPECT_OK(orSetDevice(1));
        usage_now();
        int initialized = 1;
        EXPECT_OK(orIsInitialized(&initialized));
        EXPECT_EQ(initialized, 0);
        void* pointer = nullptr;
        EXPECT_OK(orMalloc(&pointer, 1));
        EXPECT_OK(orIsInitialized(&initialized));
        EXPECT_EQ(initialized, 1);
        finish();
      },
      testing::ExitedWithCode(0),
      "^$");
}

TEST(orIsInBadFork, OnlyInAChildForkedAfterUse) {
#if defined(_WIN32)
  GTEST_SKIP() << "Windows does not fork";
#else
  ASSERT_OK(orInit());
  int bad = 1;
  ASSERT_OK(orIsInBadFork(&bad));
  EXPECT_EQ(bad, 0);
  const int status = fork_and_run([] {
    int in_child = 0;
    return orIsInBadFork(&in_child) == orSuccess && in_child == 1 ? 0 : 1;
  });
  EXPECT_EQ(status, 0);
#endif
}

TEST(orGetResourceUsage, CountsCreatedObjects) {
  const orResourceUsage before = usage_now();
  const Block block(1000);
  const PinnedBlock pinned(100);
  const Stream stream;
  const Event event;
  const InjectedFailure failure({.site = orFailureLaunch, .first = 100});
  ASSERT_OK(orMemoryUnprotect(block.get()));
  orResourceUsage usage = OPENREG_RESOURCE_USAGE_INIT;
  ASSERT_OK(orGetResourceUsage(&usage));
  EXPECT_EQ(usage.deviceBlocks, before.deviceBlocks + 1);
  EXPECT_EQ(usage.deviceBytes, before.deviceBytes + 1000);
  EXPECT_EQ(usage.hostBlocks, before.hostBlocks + 1);
  EXPECT_EQ(usage.hostBytes, before.hostBytes + 100);
  EXPECT_EQ(usage.unprotectedBlocks, before.unprotectedBlocks + 1);
  EXPECT_EQ(usage.streams, before.streams + 1);
  EXPECT_EQ(usage.events, before.events + 1);
  EXPECT_EQ(usage.failures, before.failures + 1);
  EXPECT_OK(orMemoryProtect(block.get()));
}

TEST(orGetResourceUsage, CountsTheWorkersOfStreams) {
  const CurrentDevice device(0);
  const Latch default_latch(nullptr); // otherwise its worker could end
  const CurrentDevice other(1);
  const Latch other_default_latch(nullptr);
  const Stream first;
  const Stream second;
  const std::size_t before = usage_now().threads;
  const Latch first_latch(first);
  const Latch second_latch(second);
  EXPECT_EQ(usage_now().threads, before + 2);
}

TEST(orGetResourceUsage, CountsNoDefaultStream) {
  const std::size_t before = usage_now().streams;
  orStream_t stream = nullptr;
  ASSERT_OK(orStreamGetDefault(&stream, 1));
  EXPECT_EQ(usage_now().streams, before);
}

} // namespace
