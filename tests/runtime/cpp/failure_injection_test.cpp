// SPDX-License-Identifier: BSD-3-Clause
// Injected failures: which calls they hit, and the results.
#include "support.h"

#include <atomic>
#include <chrono>
#include <cmath>

namespace {

using Clock = std::chrono::steady_clock;
constexpr auto nothing = [](void*) {};

/// Launches kernels in sequence; returns an x for each that a failure hits.
std::string launches(const InjectedFailure::Spec& spec, int count) {
  const InjectedFailure failure(spec);
  std::string result;
  for (int i = 0; i < count; ++i) {
    const orError_t error = orLaunchKernelBlocking(nullptr, nothing, nullptr);
    result += error == orSuccess ? '.' : 'x';
  }
  return result;
}

orFailureSpec allocation_failure() {
  orFailureSpec spec = OPENREG_FAILURE_SPEC_INIT;
  spec.error = orErrorMemoryAllocation;
  return spec;
}

TEST(orFailureInject, FirstIsTheOnlyCallThatIsHit) {
  EXPECT_EQ(
      launches({.site = orFailureLaunch, .first = 3, .period = 0}, 8),
      "..x.....");
}

TEST(orFailureInject, PeriodHitsEachNthCallAfterIt) {
  EXPECT_EQ(
      launches({.site = orFailureLaunch, .first = 2, .period = 3}, 9),
      ".x..x..x.");
}

TEST(orFailureInject, SameSeedHitsTheSameCalls) {
  const auto with_seed = [](std::uint64_t seed) {
    return launches(
        {.site = orFailureLaunch, .probability = 0.25, .seed = seed}, 400);
  };
  const std::string calls = with_seed(1);
  EXPECT_EQ(with_seed(1), calls);
  EXPECT_NE(with_seed(2), calls);
  const auto hits = std::count(calls.begin(), calls.end(), 'x');
  EXPECT_GT(hits, 60); // 100 are expected
  EXPECT_LT(hits, 140);
  // The C++ standard defines the generator, so all platforms give this result.
  EXPECT_EQ(calls.substr(0, 20), "xx.x...x..x..x.x....");
}

TEST(orFailureInject, ProbabilityCountsFromTheFirstCallOn) {
  EXPECT_EQ(
      launches({.site = orFailureLaunch, .first = 3, .probability = 1}, 5),
      "..xxx");
}

TEST(orFailureInject, AcceptsACheckedSpecOnly) {
  orFailure_t failure = nullptr;
  const auto rejects = [&failure](auto change, const char* part) {
    orFailureSpec spec = allocation_failure();
    change(spec);
    EXPECT_EQ(orFailureInject(&failure, &spec), orErrorInvalidValue);
    EXPECT_MESSAGE(part);
  };
  using Spec = orFailureSpec;
  rejects(
      [](Spec& s) { s.site = static_cast<orFailureSite>(4); }, "spec.site 4");
  rejects(
      [](Spec& s) { s.site = static_cast<orFailureSite>(-1); }, "spec.site -1");
  rejects(
      [](Spec& s) {
        s.site = orFailureMallocHost;
        s.device = 0;
      },
      "spec.device must be -1");
  for (const orError_t error :
       {orErrorLaunchFailure, orErrorIllegalAddress, orErrorTimeout}) {
    rejects([error](Spec& s) { s.error = error; }, orGetErrorName(error));
  }
  rejects(
      [](Spec& s) {
        s.site = orFailureMallocHost;
        s.error = orErrorDeviceLost;
      },
      "orErrorDeviceLost cannot be injected at this site");
  rejects(
      [](Spec& s) { s.site = orFailureLaunch; },
      "orErrorMemoryAllocation cannot be injected at this site");
  rejects([](Spec& s) { s.error = orSuccess; }, "the failure would do nothing");
  rejects([](Spec& s) { s.delay = 3'600'000'001; }, "spec.delay 3600000001");
  rejects([](Spec& s) { s.first = 0; }, "spec.first is 0");
  for (const double probability : {-0.1, 1.1, std::nan("")}) {
    rejects(
        [probability](Spec& s) { s.probability = probability; },
        "spec.probability");
  }
  rejects(
      [](Spec& s) { s.probability = std::nextafter(1.0, 2.0); },
      "spec.probability 1.0000000000000002 is not in [0, 1]");
  rejects(
      [](Spec& s) {
        s.probability = 0.5;
        s.period = 3;
      },
      "spec.period is 3, but probability is set too");
  const orFailureSpec good = allocation_failure();
  ASSERT_OK(orFailureInject(&failure, &good));
  EXPECT_OK(orFailureRemove(failure));
}

TEST(orFailureInject, PastTheCountIsInvalidDevice) {
  orFailure_t failure = nullptr;
  orFailureSpec spec = allocation_failure();
  for (const int device : {2, -2}) {
    spec.device = device;
    EXPECT_EQ(orFailureInject(&failure, &spec), orErrorInvalidDevice);
  }
}

TEST(orFailureInject, EachSiteCountsItsCalls) {
  constexpr std::uint64_t kNever = 1'000'000;
  const InjectedFailure malloc(
      {.site = orFailureMalloc,
       .error = orErrorMemoryAllocation,
       .first = kNever});
  const InjectedFailure malloc_host(
      {.site = orFailureMallocHost,
       .error = orErrorMemoryAllocation,
       .first = kNever});
  const InjectedFailure launch({.site = orFailureLaunch, .first = kNever});
  const InjectedFailure copy({.site = orFailureCopy, .first = kNever});
  const Block block(8);
  const Block other(8);
  const Block target(8); // used only by the stream's work
  const PinnedBlock pinned(8);
  const PinnedBlock more_pinned(8);
  void* none = nullptr;
  ASSERT_OK(orMalloc(&none, 0)); // does not count as an allocation
  const Stream stream;
  ASSERT_OK(orLaunchKernel(stream, [] {}));
  ASSERT_OK(orLaunchKernelBlocking(stream, nothing, nullptr));
  ASSERT_OK(orLaunchHostFunc(stream, nothing, nullptr, nullptr)); // not counted
  ASSERT_OK(orMemcpy(block.get(), pinned.get(), 8, orMemcpyDefault));
  ASSERT_OK(
      orMemcpyAsync(target.get(), pinned.get(), 8, orMemcpyDefault, stream));
  ASSERT_OK(orMemcpyPeer(block.get(), 0, other.get(), 0, 8));
  ASSERT_OK(orMemcpyPeerAsync(target.get(), 0, other.get(), 0, 8, stream));
  ASSERT_OK(orMemset(block.get(), 0, 8));
  ASSERT_OK(orMemsetAsync(target.get(), 0, 8, stream));
  ASSERT_OK(orMemset(block.get(), 0, 0)); // does not enqueue work
  ASSERT_OK(orStreamSynchronize(stream));
  EXPECT_EQ(malloc.calls(), 3u);
  EXPECT_EQ(malloc_host.calls(), 2u);
  EXPECT_EQ(launch.calls(), 2u);
  EXPECT_EQ(copy.calls(), 6u);
}

TEST(orFailureInject, OnOneDeviceLeavesTheOthers) {
  const InjectedFailure failure(
      {.site = orFailureMalloc, .device = 1, .error = orErrorMemoryAllocation});
  const Block block(8);
  EXPECT_EQ(failure.calls(), 0u);
  const CurrentDevice current(1);
  void* pointer = nullptr;
  EXPECT_EQ(orMalloc(&pointer, 8), orErrorMemoryAllocation);
  EXPECT_EQ(failure.calls(), 1u);
}

TEST(orFailureInject, SeveralFailuresCountEachCallAndTheFirstOneDecides) {
  const InjectedFailure older({.site = orFailureLaunch, .period = 2});
  const InjectedFailure newer(
      {.site = orFailureLaunch,
       .error = orErrorIllegalAddress,
       .first = 1,
       .period = 4});
  for (const orError_t error :
       {orErrorLaunchFailure, orSuccess, orErrorLaunchFailure, orSuccess}) {
    EXPECT_EQ(orLaunchKernelBlocking(nullptr, nothing, nullptr), error);
  }
  EXPECT_EQ(older.calls(), 4u);
  EXPECT_EQ(older.hits(), 2u);
  EXPECT_EQ(newer.calls(), 4u);
  EXPECT_EQ(newer.hits(), 1u);
}

TEST(orFailureInject, ManyThreadsAreHitAsOftenAsOne) {
  const InjectedFailure failure({.site = orFailureLaunch, .period = 10});
  std::atomic<int> failures{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&failures] {
      const Stream stream;
      for (int i = 0; i < 100; ++i) {
        failures +=
            orLaunchKernelBlocking(stream, nothing, nullptr) == orSuccess ? 0
                                                                          : 1;
      }
    });
  }
  for (auto& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(failures, 80);
  EXPECT_EQ(failure.hits(), 80u);
}

TEST(orFailureGetCounts, ReturnsCallsAndHits) {
  const InjectedFailure failure(
      {.site = orFailureLaunch, .first = 2, .period = 2});
  for (int i = 0; i < 5; ++i) {
    static_cast<void>(orLaunchKernelBlocking(nullptr, nothing, nullptr));
  }
  std::uint64_t calls = 0;
  std::uint64_t hits = 0;
  ASSERT_OK(orFailureGetCounts(failure, &calls, &hits));
  EXPECT_EQ(calls, 5u);
  EXPECT_EQ(hits, 2u);
}

TEST(orFailureRemove, EndsTheFailure) {
  orFailure_t failure = nullptr;
  const orFailureSpec spec = allocation_failure();
  ASSERT_OK(orFailureInject(&failure, &spec));
  ASSERT_OK(orFailureRemove(failure));
  const Block block(8);
  EXPECT_EQ(orFailureRemove(failure), orErrorInvalidHandle);
  std::uint64_t number = 0;
  EXPECT_EQ(
      orFailureGetCounts(failure, &number, &number), orErrorInvalidHandle);
}

TEST(orFailureRemove, WorkThatWasHitStillFails) {
  const Stream stream;
  Latch latch(stream);
  {
    const InjectedFailure failure({.site = orFailureLaunch});
    ASSERT_OK(orLaunchKernel(stream, [] {}));
  }
  ASSERT_OK(orLaunchKernel(stream, [] {}));
  latch.release();
  EXPECT_EQ(orStreamSynchronize(stream), orErrorLaunchFailure);
}

TEST(orMalloc, InjectedFailureIsNamedInTheMessage) {
  const InjectedFailure failure(
      {.site = orFailureMalloc, .error = orErrorMemoryAllocation, .first = 2});
  const Block block(8);
  void* pointer = &pointer;
  EXPECT_EQ(orMalloc(&pointer, 8), orErrorMemoryAllocation);
  EXPECT_EQ(pointer, nullptr);
  EXPECT_MESSAGE("orMalloc: injected failure: allocation number 2 on device 0");
}

TEST(orMallocHost, InjectedFailureIsMemoryAllocation) {
  const InjectedFailure failure(
      {.site = orFailureMallocHost, .error = orErrorMemoryAllocation});
  void* pointer = &pointer;
  EXPECT_EQ(orMallocHost(&pointer, 8), orErrorMemoryAllocation);
  EXPECT_EQ(pointer, nullptr);
  EXPECT_MESSAGE("allocation of pinned memory number 1");
}

TEST(orLaunchKernel, InjectedFailureIsReportedAtTheNextWait) {
  const Stream stream;
  std::atomic<int> ran{0};
  auto argument = std::make_shared<int>(1);
  {
    const InjectedFailure failure({.site = orFailureLaunch, .period = 0});
    ASSERT_OK(orLaunchKernel(stream, [&ran, argument] { ++ran; }));
    ASSERT_OK(orLaunchKernel(stream, [&ran, argument] { ++ran; }));
  }
  EXPECT_EQ(orStreamSynchronize(stream), orErrorLaunchFailure);
  EXPECT_MESSAGE("injected failure: launch number 1 on device 0");
  EXPECT_EQ(ran, 0) << "the work behind the failure is dropped";
  EXPECT_EQ(argument.use_count(), 1) << "the arguments are released";
  EXPECT_OK(orStreamSynchronize(stream));
}

TEST(orLaunchHostFunc, IsHitByNoFailure) {
  const InjectedFailure failure({.site = orFailureLaunch});
  const Stream stream;
  bool ran = false;
  ASSERT_OK(orLaunchHostFunc(
      stream, [](void* p) { *static_cast<bool*>(p) = true; }, &ran, nullptr));
  EXPECT_OK(orStreamSynchronize(stream));
  EXPECT_TRUE(ran);
}

TEST(orMemcpy, InjectedFailureFailsTheCallAndCopiesNothing) {
  const Block block(1);
  ASSERT_OK(orMemset(block.get(), 1, 1));
  char host = 2;
  {
    const InjectedFailure failure({.site = orFailureCopy});
    EXPECT_EQ(
        orMemcpy(&host, block.get(), 1, orMemcpyDeviceToHost),
        orErrorLaunchFailure);
    EXPECT_MESSAGE("orMemcpy: injected failure: copy number 1");
  }
  EXPECT_EQ(host, 2);
  EXPECT_OK(orDeviceSynchronize()) << "the failure was the call's";
}

TEST(orMemcpyAsync, InjectedFailureIsReportedAtTheNextWait) {
  const Stream stream;
  const Block block(1);
  const PinnedBlock pinned(1);
  *pinned.get() = 2;
  {
    const InjectedFailure failure({.site = orFailureCopy});
    ASSERT_OK(orMemcpyAsync(
        pinned.get(), block.get(), 1, orMemcpyDeviceToHost, stream));
  }
  EXPECT_EQ(orStreamSynchronize(stream), orErrorLaunchFailure);
  EXPECT_EQ(*pinned.get(), 2);
}

/// Makes one enqueued command fail with a sticky error of device 0.
void expect_to_stick(orFailureSite site, orError_t code) {
  {
    orStream_t stream = nullptr; // destroyed by the reset
    ASSERT_OK(orStreamCreate(&stream));
    void* block = nullptr;
    ASSERT_OK(orMalloc(&block, 1));
    Latch latch(stream);
    const InjectedFailure failure({.site = site, .error = code});
    if (site == orFailureLaunch) {
      ASSERT_OK(orLaunchKernel(stream, [] {}));
    } else {
      ASSERT_OK(orMemsetAsync(block, 0, 1, stream));
    }
    EXPECT_EQ(orStreamQuery(stream), orErrorNotReady);
    latch.release();
    EXPECT_EQ(orStreamSynchronize(stream), code);
  }
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(orDeviceSynchronize(), code);
    EXPECT_MESSAGE("injected failure");
  }
  {
    const CurrentDevice current(1);
    EXPECT_OK(orDeviceSynchronize());
  }
  ASSERT_OK(orDeviceReset());
  EXPECT_OK(orDeviceSynchronize());
}

TEST(orLaunchKernel, InjectedIllegalAddressSticksToTheDevice) {
  expect_to_stick(orFailureLaunch, orErrorIllegalAddress);
}

TEST(orLaunchKernel, InjectedDeviceLostSticksToTheDevice) {
  expect_to_stick(orFailureLaunch, orErrorDeviceLost);
}

TEST(orMemsetAsync, InjectedIllegalAddressSticksToTheDevice) {
  expect_to_stick(orFailureCopy, orErrorIllegalAddress);
}

TEST(orMemsetAsync, InjectedDeviceLostSticksToTheDevice) {
  expect_to_stick(orFailureCopy, orErrorDeviceLost);
}

TEST(orMalloc, InjectedDeviceLostSticksToTheDevice) {
  {
    const InjectedFailure failure(
        {.site = orFailureMalloc, .error = orErrorDeviceLost});
    void* pointer = nullptr;
    EXPECT_EQ(orMalloc(&pointer, 8), orErrorDeviceLost);
    EXPECT_EQ(pointer, nullptr);
  }
  EXPECT_EQ(orDeviceSynchronize(), orErrorDeviceLost);
  ASSERT_OK(orDeviceReset());
}

constexpr std::uint64_t kDelay = 20'000; // microseconds
constexpr std::chrono::microseconds kDelayTime{kDelay};

TEST(orFailureInject, DelayHoldsTheWorkAndLaterWork) {
  const Stream stream;
  const Stream other;
  const InjectedFailure failure(
      {.site = orFailureLaunch,
       .error = orSuccess,
       .delay = kDelay,
       .period = 0});
  Clock::time_point first;
  Clock::time_point second;
  Clock::time_point elsewhere;
  const auto start = Clock::now();
  ASSERT_OK(orLaunchKernel(stream, [&first] { first = Clock::now(); }));
  ASSERT_OK(orLaunchKernel(stream, [&second] { second = Clock::now(); }));
  ASSERT_OK(orLaunchKernel(other, [&elsewhere] { elsewhere = Clock::now(); }));
  ASSERT_OK(orStreamSynchronize(other));
  ASSERT_OK(orStreamSynchronize(stream));
  EXPECT_GE(first, start + kDelayTime);
  EXPECT_GE(second, first);
  EXPECT_LT(elsewhere, second);
}

TEST(orFailureInject, DelayHoldsAnAllocation) {
  const InjectedFailure failure(
      {.site = orFailureMalloc, .error = orSuccess, .delay = kDelay});
  const auto start = Clock::now();
  const Block block(8);
  EXPECT_GE(Clock::now(), start + kDelayTime);
}

TEST(orFailureInject, DelayAndErrorComeOneAfterTheOther) {
  const InjectedFailure failure({.site = orFailureLaunch, .delay = kDelay});
  const auto start = Clock::now();
  EXPECT_EQ(
      orLaunchKernelBlocking(nullptr, nothing, nullptr), orErrorLaunchFailure);
  EXPECT_GE(Clock::now(), start + kDelayTime);
}

TEST(orFailureInject, DelayEndsWithTheDevice) {
  orStream_t stream = nullptr; // destroyed by the reset
  ASSERT_OK(orStreamCreate(&stream));
  bool ran = false;
  {
    const InjectedFailure failure(
        {.site = orFailureLaunch, .error = orSuccess, .delay = 3'600'000'000});
    ASSERT_OK(orLaunchKernel(stream, [&ran] { ran = true; }));
    ASSERT_OK(orLaunchKernel(stream, [&ran] { ran = true; }));
  }
  EXPECT_EQ(orStreamQuery(stream), orErrorNotReady);
  ASSERT_OK(orDeviceReset()); // waits for the running kernel
  EXPECT_FALSE(ran);
}

TEST(orFailureInject, DelayOfAnAllocationEndsWithTheDevice) {
  orError_t error = orSuccess;
  std::thread thread;
  {
    const InjectedFailure failure(
        {.site = orFailureMalloc, .error = orSuccess, .delay = 3'600'000'000});
    thread = std::thread([&error] {
      void* pointer = nullptr;
      error = orMalloc(&pointer, 8);
    });
    while (failure.calls() == 0) {
      std::this_thread::yield();
    }
  }
  ASSERT_OK(orDeviceLose(0));
  thread.join();
  EXPECT_EQ(error, orErrorDeviceLost);
  ASSERT_OK(orDeviceReset());
}

TEST(orFailureInject, CallThatTimesOutIsNotCounted) {
  const Block block(64);
  const InjectedFailure failure(
      {.site = orFailureCopy, .first = 1, .period = 0});
  {
    const Latch latch(nullptr);
    ASSERT_OK(orDeviceSetLimit(orLimitWaitTimeout, 1));
    EXPECT_EQ(orMemset(block.get(), 0, 64), orErrorTimeout);
    ASSERT_OK(orDeviceSetLimit(orLimitWaitTimeout, 0));
  }
  EXPECT_EQ(failure.calls(), 0u);
  EXPECT_EQ(orMemset(block.get(), 0, 64), orErrorLaunchFailure);
  EXPECT_EQ(failure.hits(), 1u);
}

} // namespace
