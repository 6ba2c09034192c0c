// SPDX-License-Identifier: BSD-3-Clause
// Runs the tests. A test fails if it leaves resources behind.
#include "support.h"

#include <chrono>
#include <ostream>

/// The left side may have fewer threads, because idle workers end.
bool operator==(const orResourceUsage& left, const orResourceUsage& right) {
  return left.deviceBlocks == right.deviceBlocks &&
      left.deviceBytes == right.deviceBytes &&
      left.hostBlocks == right.hostBlocks &&
      left.hostBytes == right.hostBytes &&
      left.hostRegistrations == right.hostRegistrations &&
      left.unprotectedBlocks == right.unprotectedBlocks &&
      left.ipcMappings == right.ipcMappings && left.streams == right.streams &&
      left.events == right.events && left.failures == right.failures &&
      left.threads <= right.threads;
}

std::ostream& operator<<(std::ostream& out, const orResourceUsage& usage) {
  return out << usage.deviceBlocks << " blocks of " << usage.deviceBytes
             << " bytes, " << usage.hostBlocks << " pinned of "
             << usage.hostBytes << " bytes, " << usage.hostRegistrations
             << " registrations, " << usage.unprotectedBlocks << " open, "
             << usage.ipcMappings << " mappings, " << usage.streams
             << " streams, " << usage.events << " events, " << usage.failures
             << " failures, " << usage.threads << " threads";
}

namespace {

int device_count() {
  int count = 0;
  EXPECT_OK(orGetDeviceCount(&count));
  return count;
}

orResourceUsage usage() {
  orResourceUsage result = OPENREG_RESOURCE_USAGE_INIT;
  EXPECT_OK(orGetResourceUsage(&result));
  return result;
}

/// Checks that each test restores the state and releases its resources.
class LeakCheck : public testing::EmptyTestEventListener {
  void OnTestStart(const testing::TestInfo&) override {
    before_ = usage();
  }

  void OnTestEnd(const testing::TestInfo&) override {
    int used = 0;
    EXPECT_OK(orIsInitialized(&used));
    if (used != 0) {
      check_devices();
      // The default streams may keep their workers.
      before_.threads = static_cast<std::size_t>(device_count());
    }
    // The worker of a destroyed stream ends after its last work.
    const auto deadline =
        std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (!(usage() == before_) &&
           std::chrono::steady_clock::now() < deadline) {
      std::this_thread::yield();
    }
    EXPECT_EQ(usage(), before_) << "the test leaves something behind";
  }

  /// Checks that each device works, without limits.
  static void check_devices() {
    int current = -1;
    EXPECT_OK(orGetDevice(&current));
    EXPECT_EQ(current, 0);
    for (int device = 0; device < device_count(); ++device) {
      const CurrentDevice scope(device);
      EXPECT_OK(orLaunchKernel(orStream_t(nullptr), [] {}));
      EXPECT_OK(orDeviceSynchronize());
      orDeviceProp prop = OPENREG_DEVICE_PROP_INIT;
      EXPECT_OK(orGetDeviceProperties(&prop, device));
      std::size_t limit = 0;
      EXPECT_OK(orDeviceGetLimit(&limit, orLimitMemory));
      EXPECT_EQ(limit, prop.totalGlobalMem);
      EXPECT_OK(orDeviceGetLimit(&limit, orLimitWaitTimeout));
      EXPECT_EQ(limit, 0u);
    }
  }

  orResourceUsage before_ = OPENREG_RESOURCE_USAGE_INIT;
};

} // namespace

#if defined(__SANITIZE_ADDRESS__)
// A forked child lacks the parent's threads, so LeakSanitizer reports memory
// that only their stacks referred to.
extern "C" const char* __lsan_default_suppressions();
extern "C" const char* __lsan_default_suppressions() {
  return "leak:__cxa_thread_atexit_impl";
}
#endif

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  testing::UnitTest::GetInstance()->listeners().Append(new LeakCheck);
  return RUN_ALL_TESTS();
}
