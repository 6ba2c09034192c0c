// SPDX-License-Identifier: BSD-3-Clause
// OPENREG_FAILURES.
#include "support.h"

namespace {

using FailureSettings = FreshProcess;
constexpr auto nothing = [](void*) {};

/// Runs `body` in a process with this value of OPENREG_FAILURES.
template <typename Body>
void with_failures(const char* value, Body body) {
  EXPECT_EXIT(
      {
        setenv("OPENREG_FAILURES", value, 1);
        body();
        finish();
      },
      testing::ExitedWithCode(0),
      "^$")
      << value;
}

std::size_t failure_count() {
  EXPECT_OK(orInit());
  orResourceUsage usage = OPENREG_RESOURCE_USAGE_INIT;
  EXPECT_OK(orGetResourceUsage(&usage));
  return usage.failures;
}

TEST_F(FailureSettings, NoneAndNothingAreNoFailure) {
  for (const char* value : {"none", "", " ", " none "}) {
    with_failures(value, [] { EXPECT_EQ(failure_count(), 0u); });
  }
}

TEST_F(FailureSettings, AllocationsFailForWantOfMemory) {
  with_failures("malloc:first=2;malloc_host:period=1", [] {
    EXPECT_EQ(failure_count(), 2u);
    void* pointer = nullptr;
    EXPECT_OK(orMalloc(&pointer, 8));
    EXPECT_EQ(orMalloc(&pointer, 8), orErrorMemoryAllocation);
    EXPECT_OK(orMalloc(&pointer, 8));
    EXPECT_EQ(orMallocHost(&pointer, 8), orErrorMemoryAllocation);
    EXPECT_EQ(orMallocHost(&pointer, 8), orErrorMemoryAllocation);
  });
}

TEST_F(FailureSettings, LaunchesAndCopiesFailLikeAKernel) {
  with_failures(" launch : first = 2 ; copy : period = 1 ; ", [] {
    EXPECT_EQ(failure_count(), 2u);
    EXPECT_OK(orLaunchKernelBlocking(nullptr, nothing, nullptr));
    EXPECT_EQ(
        orLaunchKernelBlocking(nullptr, nothing, nullptr),
        orErrorLaunchFailure);
    const Block block(8);
    EXPECT_EQ(orMemset(block.get(), 0, 8), orErrorLaunchFailure);
  });
}

TEST_F(FailureSettings, ProbabilityOf0HitsNothing) {
  with_failures("launch:period=1:probability=0", [] {
    EXPECT_EQ(failure_count(), 1u);
    for (int i = 0; i < 3; ++i) {
      EXPECT_OK(orLaunchKernelBlocking(nullptr, nothing, nullptr));
    }
  });
}

TEST_F(FailureSettings, ErrorAndDeviceCanBeChosen) {
  with_failures("launch:device=1:error=DeviceLost", [] {
    EXPECT_OK(orLaunchKernelBlocking(nullptr, nothing, nullptr));
    EXPECT_OK(orSetDevice(1));
    EXPECT_EQ(
        orLaunchKernelBlocking(nullptr, nothing, nullptr), orErrorDeviceLost);
    EXPECT_EQ(orDeviceSynchronize(), orErrorDeviceLost);
    EXPECT_OK(orDeviceReset());
    EXPECT_OK(orLaunchKernelBlocking(nullptr, nothing, nullptr));
  });
}

TEST_F(FailureSettings, DelayAloneFailsNothing) {
  with_failures("launch:delay=1:period=1;copy:error=none:delay=1", [] {
    EXPECT_EQ(failure_count(), 2u);
    EXPECT_OK(orLaunchKernelBlocking(nullptr, nothing, nullptr));
    const Block block(8);
    EXPECT_OK(orMemset(block.get(), 0, 8));
  });
}

TEST_F(FailureSettings, ProbabilityAndSeedHitTheSameCallsAsTheApi) {
  with_failures("launch:probability=0.5:seed=3", [] {
    std::string hit;
    for (int i = 0; i < 100; ++i) {
      hit += orLaunchKernelBlocking(nullptr, nothing, nullptr) == orSuccess
          ? '.'
          : 'x';
    }
    // A second failure with the same seed hits the same calls.
    const InjectedFailure failure(
        {.site = orFailureMalloc,
         .error = orErrorMemoryAllocation,
         .probability = 0.5,
         .seed = 3});
    std::string same;
    for (int i = 0; i < 100; ++i) {
      void* pointer = nullptr;
      same += orMalloc(&pointer, 8) == orSuccess ? '.' : 'x';
      EXPECT_OK(orFree(pointer));
    }
    EXPECT_EQ(hit, same);
    EXPECT_NE(hit.find('x'), std::string::npos);
  });
}

TEST_F(FailureSettings, CanNotBeRemovedButAreJoinedByOthers) {
  with_failures("malloc:first=3", [] {
    {
      const InjectedFailure failure(
          {.site = orFailureMalloc, .error = orErrorMemoryAllocation});
      EXPECT_EQ(failure_count(), 2u);
      void* pointer = nullptr;
      EXPECT_EQ(orMalloc(&pointer, 8), orErrorMemoryAllocation);
    }
    EXPECT_EQ(failure_count(), 1u);
    void* pointer = nullptr;
    EXPECT_OK(orMalloc(&pointer, 8));
    EXPECT_EQ(orMalloc(&pointer, 8), orErrorMemoryAllocation);
  });
}

TEST_F(FailureSettings, FailuresSurfaceAtTheLaunchIfThatBlocks) {
  setenv("OPENREG_LAUNCH_BLOCKING", "1", 1);
  with_failures("launch:first=1", [] {
    EXPECT_EQ(orLaunchKernel(nullptr, [] {}), orErrorLaunchFailure);
    EXPECT_OK(orStreamSynchronize(nullptr));
    EXPECT_OK(orLaunchKernel(nullptr, [] {}));
  });
  unsetenv("OPENREG_LAUNCH_BLOCKING");
}

TEST_F(FailureSettings, WrongTextFailsEveryUseAndNamesAcceptedTexts) {
  const std::pair<const char*, const char*> wrong[] = {
      {"alloc:first=1", "'alloc' is not a site: expected malloc, malloc_host"},
      {"malloc:nth=1", "'nth' is not a key: expected device, error, delay"},
      {"malloc:first", "'' is not a number"},
      {"malloc:first=one", "'one' is not a number"},
      {"malloc:first=-1", "'-1' is not a number"},
      {"malloc:first=1 2", "'1 2' is not a number"},
      {"malloc:first=0", "first is 0: calls are counted from 1"},
      {"malloc:first=1:first=2", "'first' is given twice"},
      {"malloc:probability=2", "is not in .0, 1."},
      {"malloc:probability=nan", "'nan' is not a number"},
      {"malloc:probability=+0.5", "'.0.5' is not a number"},
      {"malloc:probability=1e-400", "'1e-400' is not a number"},
      {"malloc:probability=0.5f", "'0.5f' is not a number"},
      {"malloc:device=2", "device 2 does not exist"},
      {"malloc_host:device=0", "device must be -1"},
      {"malloc:error=LaunchFailure", "orErrorLaunchFailure cannot be injected"},
      {"launch:error=Timeout", "'Timeout' is not an error: expected none"},
      {"launch:error=none", "the failure would do nothing"},
      {"launch:delay=3600000001", "is too long"},
      {"malloc:first=1;none", "'none' is not a site"},
  };
  for (const auto& [value, part] : wrong) {
    EXPECT_EXIT(
        {
          setenv("OPENREG_FAILURES", value, 1);
          report(orInit(), orErrorInvalidValue);
        },
        testing::ExitedWithCode(0),
        std::string("environment variable OPENREG_FAILURES=.*") + part)
        << value;
  }
}

} // namespace
