// SPDX-License-Identifier: BSD-3-Clause
// Records of calls and commands.
#include "support.h"

#include <openreg/activity.h>

#include <algorithm>
#include <iterator>
#include <stdexcept>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

namespace {

/// Records during the scope, unless it is stopped earlier.
class Recording {
 public:
  explicit Recording(
      unsigned int kinds = orActivityAll,
      std::size_t capacity = 0) {
    EXPECT_OK(orActivityEnable(kinds, capacity));
  }
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;
  ~Recording() {
    EXPECT_OK(orActivityDisable());
  }
};

struct Taken {
  std::vector<orActivity> records;
  std::uint64_t dropped = 0;

  std::vector<orActivity> of(orActivityKind kind) const {
    std::vector<orActivity> found;
    std::copy_if(
        records.begin(),
        records.end(),
        std::back_inserter(found),
        [kind](const orActivity& each) { return each.kind == kind; });
    return found;
  }
};

Taken take() {
  Taken taken;
  std::size_t count = 16;
  taken.records.resize(count);
  std::size_t filled = 0;
  for (;;) {
    std::uint64_t dropped = 0;
    EXPECT_OK(orActivityTake(
        taken.records.data() + filled,
        sizeof(orActivity),
        taken.records.size() - filled,
        &count,
        &dropped));
    taken.dropped += dropped;
    filled += count;
    if (filled < taken.records.size()) {
      break;
    }
    taken.records.resize(2 * filled);
  }
  taken.records.resize(filled);
  return taken;
}

void nothing(void*) {}
void ignore(void* /*args*/, const void* /*reply*/, size_t /*size*/) {}

orLaunchInfo info_of(const char* name, std::uint64_t bytes = 0) {
  orLaunchInfo info = OPENREG_LAUNCH_INFO_INIT;
  info.name = name;
  info.bytes = bytes;
  return info;
}

constexpr unsigned int kKernels = 1U << orActivityKernel;

TEST(orActivityEnable, RecordsKernelsWithTheirTimesAndPlace) {
  const Stream stream;
  int number = -1;
  ASSERT_OK(orStreamGetNumber(stream, &number));
  {
    const Recording recording;
    const orLaunchInfo info = info_of("product", 12);
    ASSERT_OK(orLaunchKernelWithInfo(stream, nothing, nullptr, nullptr, &info));
    ASSERT_OK(orStreamSynchronize(stream));
  }
  const auto kernels = take().of(orActivityKernel);
  ASSERT_EQ(kernels.size(), 1u);
  EXPECT_STREQ(kernels[0].name, "product");
  EXPECT_EQ(kernels[0].bytes, 12u);
  EXPECT_EQ(kernels[0].device, 0);
  EXPECT_EQ(kernels[0].stream, number);
  EXPECT_LE(kernels[0].enqueued, kernels[0].started);
  EXPECT_LE(kernels[0].started, kernels[0].ended);
  EXPECT_EQ(kernels[0].error, orSuccess);
}

TEST(orActivityEnable, WhileItIsOnIsNotPermitted) {
  ASSERT_OK(orActivityEnable(orActivityAll, 0));
  EXPECT_EQ(orActivityEnable(orActivityAll, 0), orErrorNotPermitted);
  EXPECT_MESSAGE("call orActivityDisable() first");
  EXPECT_OK(orActivityDisable());
}

TEST(orActivityEnable, NoKindAndUnknownKindsAreInvalidValue) {
  for (const unsigned int kinds : {0U, 1U << 8}) {
    EXPECT_EQ(orActivityEnable(kinds, 0), orErrorInvalidValue);
    EXPECT_MESSAGE("expected a combination of 1 << orActivityKind");
  }
}

TEST(orActivityEnable, RecordsOnlyTheRequestedActivity) {
  const Stream stream;
  const Recording recording(1U << orActivityCall);
  ASSERT_OK(orLaunchKernelBlocking(stream, nothing, nullptr));
  const Taken taken = take();
  EXPECT_EQ(taken.records.size(), 1u);
  EXPECT_STREQ(taken.records.at(0).name, "orLaunchKernelBlocking");
}

TEST(orActivityEnable, CallAndCommandHaveOneCorrelation) {
  const Block block(64);
  char host[64] = {};
  {
    const Recording recording;
    ASSERT_OK(orMemcpy(block.get(), host, 64, orMemcpyDefault));
  }
  const Taken taken = take();
  const auto copies = taken.of(orActivityMemcpy);
  const auto calls = taken.of(orActivityCall);
  ASSERT_EQ(copies.size(), 1u);
  ASSERT_EQ(calls.size(), 1u);
  EXPECT_EQ(copies[0].correlation, calls[0].correlation);
  EXPECT_EQ(copies[0].direction, orMemcpyHostToDevice);
  EXPECT_EQ(copies[0].hostMemory, orMemoryTypeUnmanaged);
  EXPECT_EQ(copies[0].bytes, 64u);
  EXPECT_LE(calls[0].started, copies[0].started);
  EXPECT_LE(copies[0].ended, calls[0].ended);
}

TEST(orActivityEnable, FailedCallsAndKernelsHaveTheirCodes) {
  const Stream stream;
  {
    const Recording recording;
    ASSERT_OK(orLaunchKernel(stream, [] { throw std::runtime_error("x"); }));
    EXPECT_EQ(orStreamSynchronize(stream), orErrorLaunchFailure);
  }
  const Taken taken = take();
  EXPECT_EQ(taken.of(orActivityKernel).at(0).error, orErrorLaunchFailure);
  const auto calls = taken.of(orActivityCall);
  EXPECT_TRUE(std::any_of(calls.begin(), calls.end(), [](const auto& call) {
    return std::string(call.name) == "orStreamSynchronize" &&
        call.error == orErrorLaunchFailure;
  }));
}

TEST(orActivityEnable, BlocksAreRecordedFromAllocationToTheirEnd) {
  {
    const Recording recording;
    void* block = nullptr;
    ASSERT_OK(orMalloc(&block, 100));
    ASSERT_OK(orFree(block));
  }
  const Taken taken = take();
  const auto made = taken.of(orActivityMalloc);
  const auto freed = taken.of(orActivityFree);
  ASSERT_EQ(made.size(), 1u);
  ASSERT_EQ(freed.size(), 1u);
  EXPECT_EQ(made[0].bytes, 100u);
  EXPECT_EQ(made[0].address, freed[0].address);
}

TEST(orActivityEnable, WaitOfAStreamIsRecorded) {
  const Stream first;
  const Stream second;
  const Event event;
  {
    const Recording recording;
    Latch latch(first);
    ASSERT_OK(orEventRecord(event, first));
    ASSERT_OK(orStreamWaitEvent(second, event, 0));
    ASSERT_OK(orLaunchKernel(second, nothing, nullptr, nullptr));
    latch.release();
    ASSERT_OK(orStreamSynchronize(second));
  }
  const Taken taken = take();
  const auto waits = taken.of(orActivityWait);
  const auto kernels = taken.of(orActivityKernel);
  ASSERT_EQ(waits.size(), 1u);
  ASSERT_EQ(kernels.size(), 2u);
  EXPECT_NE(kernels[0].stream, kernels[1].stream);
}

TEST(orActivityEnable, FullBufferDropsAndCounts) {
  const Stream stream;
  {
    const Recording recording(kKernels, 10);
    for (int i = 0; i < 15; ++i) {
      ASSERT_OK(orLaunchKernelBlocking(stream, nothing, nullptr));
    }
  }
  const Taken taken = take();
  EXPECT_EQ(taken.records.size(), 10u);
  EXPECT_EQ(taken.dropped, 5u);
  EXPECT_EQ(take().dropped, 0u);
}

TEST(orActivityEnable, EveryLaunchOfManyThreadsIsRecordedOnce) {
  constexpr int kThreads = 8;
  constexpr int kLaunches = 500;
  {
    const Recording recording(kKernels);
    std::vector<std::thread> threads;
    for (int i = 0; i < kThreads; ++i) {
      threads.emplace_back([] {
        const Stream stream;
        for (int j = 0; j < kLaunches; ++j) {
          EXPECT_OK(orLaunchKernel(stream, nothing, nullptr, nullptr));
        }
        EXPECT_OK(orStreamSynchronize(stream));
      });
    }
    for (auto& thread : threads) {
      thread.join();
    }
  }
  auto kernels = take().of(orActivityKernel);
  EXPECT_EQ(kernels.size(), std::size_t{kThreads} * kLaunches);
  std::sort(
      kernels.begin(), kernels.end(), [](const auto& one, const auto& other) {
        return std::tie(one.stream, one.started, one.ended) <
            std::tie(other.stream, other.started, other.ended);
      });
  for (std::size_t i = 1; i < kernels.size(); ++i) {
    if (kernels[i].stream == kernels[i - 1].stream) {
      EXPECT_LE(kernels[i - 1].ended, kernels[i].started);
      EXPECT_LT(kernels[i - 1].correlation, kernels[i].correlation);
    }
  }
}

TEST(orActivityEnable, PartOfAKernelIsNested) {
  const Stream stream;
  {
    const Recording recording(kKernels);
    ASSERT_OK(orLaunchKernel(stream, [&stream] {
      EXPECT_OK(orLaunchKernelBlocking(stream, nothing, nullptr));
      EXPECT_OK(orLaunchKernel(stream, nothing, nullptr, nullptr));
    }));
    ASSERT_OK(orStreamSynchronize(stream));
  }
  const auto kernels = take().of(orActivityKernel);
  EXPECT_EQ(kernels.size(), 3u);
  EXPECT_EQ(
      std::count_if(
          kernels.begin(),
          kernels.end(),
          [](const auto& each) { return each.nested != 0; }),
      1);
}

TEST(orActivityDisable, WorkEnqueuedBeforeIsStillRecorded) {
  const Stream stream;
  Latch latch(stream);
  {
    const Recording recording(kKernels);
    ASSERT_OK(orLaunchKernel(stream, nothing, nullptr, nullptr));
  }
  ASSERT_OK(orLaunchKernel(stream, nothing, nullptr, nullptr));
  EXPECT_EQ(take().records.size(), 0u);
  latch.release();
  ASSERT_OK(orStreamSynchronize(stream));
  EXPECT_EQ(take().records.size(), 1u);
}

TEST(orActivityDisable, WithoutARecordingDoesNothing) {
  EXPECT_OK(orActivityDisable());
}

TEST(orActivityDisable, NextRecordingHasNothingOfTheLast) {
  const Stream stream;
  Latch latch(stream);
  {
    const Recording recording(kKernels);
    ASSERT_OK(orLaunchKernel(stream, nothing, nullptr, nullptr));
  }
  const Recording recording(kKernels);
  latch.release();
  ASSERT_OK(orStreamSynchronize(stream));
  EXPECT_EQ(take().records.size(), 0u);
}

TEST(orActivityFlush, WaitsForEnqueuedWork) {
  const Stream stream;
  const Recording recording(kKernels);
  for (int i = 0; i < 100; ++i) {
    ASSERT_OK(orLaunchKernel(stream, nothing, nullptr, nullptr));
  }
  ASSERT_OK(orActivityFlush(0));
  EXPECT_EQ(take().records.size(), 100u);
}

TEST(orActivityFlush, OfAHeldStreamIsTimeout) {
  const Stream stream;
  const Recording recording(kKernels);
  Latch latch(stream);
  EXPECT_EQ(orActivityFlush(1), orErrorTimeout);
  EXPECT_MESSAGE("have not finished after 1 ms");
}

TEST(orActivityFlush, InAKernelIsNotPermitted) {
  const Stream stream;
  ASSERT_OK(orLaunchKernel(
      stream, [] { EXPECT_EQ(orActivityFlush(0), orErrorNotPermitted); }));
  ASSERT_OK(orStreamSynchronize(stream));
}

TEST(orActivityForget, KernelLeavesNoRecordAndItsCallDoes) {
  const Stream stream;
  const Recording recording;
  ASSERT_OK(orLaunchKernelBlocking(
      stream, [](void*) { EXPECT_OK(orActivityForget()); }, nullptr));
  ASSERT_OK(orLaunchKernel(
      stream, [](void*) { EXPECT_OK(orActivityForget()); }, nullptr, nullptr));
  ASSERT_OK(orLaunchKernel(stream, nothing, nullptr, nullptr));
  ASSERT_OK(orStreamSynchronize(stream));
  const Taken taken = take();
  const auto kernels = taken.of(orActivityKernel);
  const auto calls = taken.of(orActivityCall);
  ASSERT_EQ(kernels.size(), 1u);
  const auto launches =
      std::count_if(calls.begin(), calls.end(), [](const orActivity& each) {
        return std::string(each.name).starts_with("orLaunchKernel");
      });
  EXPECT_EQ(launches, 3);
}

TEST(orActivityForget, InACommandOfAKernelIsOfThatCommand) {
  static const Stream* stream = nullptr;
  const Stream own;
  stream = &own;
  const orLaunchInfo outer = info_of("outer");
  const Recording recording(kKernels);
  ASSERT_OK(orLaunchKernelWithInfo(
      own,
      [](void*) {
        EXPECT_OK(orLaunchKernelBlocking(
            *stream, [](void*) { EXPECT_OK(orActivityForget()); }, nullptr));
      },
      nullptr,
      nullptr,
      &outer));
  ASSERT_OK(orStreamSynchronize(own));
  const auto kernels = take().of(orActivityKernel);
  ASSERT_EQ(kernels.size(), 1u);
  EXPECT_STREQ(kernels[0].name, "outer");
}

TEST(orActivityForget, WithoutARecordingDoesNothing) {
  const Stream stream;
  ASSERT_OK(orLaunchKernelBlocking(
      stream, [](void*) { EXPECT_OK(orActivityForget()); }, nullptr));
}

TEST(orActivityForget, OutsideOfAKernelIsNotPermitted) {
  EXPECT_EQ(orActivityForget(), orErrorNotPermitted);
  EXPECT_MESSAGE("expected a call from within a kernel");
}

TEST(orActivityTake, AnotherSizeIsInvalidValue) {
  orActivity record{};
  std::size_t count = 0;
  std::uint64_t dropped = 0;
  EXPECT_EQ(
      orActivityTake(&record, 8, 1, &count, &dropped), orErrorInvalidValue);
  EXPECT_MESSAGE("recordSize 8");
  EXPECT_OK(orActivityTake(&record, sizeof(record), 1, &count, &dropped));
}

TEST(orActivityGetState, ReturnsTheRecordedActivity) {
  const unsigned int* kinds = nullptr;
  ASSERT_OK(orActivityGetState(&kinds));
  EXPECT_EQ(*kinds, 0u);
  const Recording recording(kKernels);
  EXPECT_EQ(*kinds, kKernels);
}

TEST(orActivityPushId, LastIdsOfTheThreadAreInItsRecords) {
  const Stream stream;
  const Recording recording(kKernels);
  ASSERT_OK(orActivityPushId(orActivityIdExternal, 7));
  ASSERT_OK(orActivityPushId(orActivityIdExternal, 8));
  ASSERT_OK(orActivityPushId(orActivityIdUser, 9));
  ASSERT_OK(orLaunchKernel(stream, nothing, nullptr, nullptr));
  std::thread([&stream] {
    EXPECT_OK(orLaunchKernel(stream, nothing, nullptr, nullptr));
  }).join();
  ASSERT_OK(orActivityFlush(0));
  const Taken taken = take();
  ASSERT_EQ(taken.records.size(), 2u);
  const auto& mine =
      taken.records[0].externalId != 0 ? taken.records[0] : taken.records[1];
  const auto& other =
      &mine == &taken.records[0] ? taken.records[1] : taken.records[0];
  EXPECT_EQ(mine.externalId, 8u);
  EXPECT_EQ(mine.userId, 9u);
  EXPECT_EQ(other.externalId, 0u);
  EXPECT_EQ(other.userId, 0u);
}

TEST(orActivityPushId, UnknownKindIsInvalidValue) {
  EXPECT_EQ(
      orActivityPushId(static_cast<orActivityIdKind>(2), 1),
      orErrorInvalidValue);
  EXPECT_MESSAGE("kind 2");
}

TEST(orActivityPopId, ReturnsTheIdsAndThenNone) {
  const Recording recording;
  ASSERT_OK(orActivityPushId(orActivityIdUser, 3));
  std::uint64_t id = 0;
  ASSERT_OK(orActivityPopId(orActivityIdUser, &id));
  EXPECT_EQ(id, 3u);
  ASSERT_OK(orActivityPopId(orActivityIdUser, &id));
  EXPECT_EQ(id, 0u);
}

TEST(orActivityPopId, UnknownKindIsInvalidValue) {
  std::uint64_t id = 0;
  EXPECT_EQ(
      orActivityPopId(static_cast<orActivityIdKind>(2), &id),
      orErrorInvalidValue);
}

TEST(orStreamGetNumber, DefaultStreamIsNumberZero) {
  int number = -1;
  ASSERT_OK(orStreamGetNumber(nullptr, &number));
  EXPECT_EQ(number, 0);
  const Stream stream;
  ASSERT_OK(orStreamGetNumber(stream, &number));
  EXPECT_GT(number, 0);
}

TEST(orLaunchKernelWithInfo, WithoutInfoIsALaunch) {
  const Stream stream;
  ASSERT_OK(orLaunchKernelWithInfo(stream, nothing, nullptr, nullptr, nullptr));
  ASSERT_OK(orStreamSynchronize(stream));
}

TEST(orLaunchKernelWithInfo, WrongInfoIsInvalidValue) {
  orLaunchInfo info = OPENREG_LAUNCH_INFO_INIT;
  info.kind = orActivityCall;
  EXPECT_EQ(
      orLaunchKernelWithInfo(nullptr, nothing, nullptr, nullptr, &info),
      orErrorInvalidValue);
  EXPECT_MESSAGE("info.kind 7");
  info = OPENREG_LAUNCH_INFO_INIT;
  info.direction = static_cast<orMemcpyKind>(9);
  EXPECT_EQ(
      orLaunchKernelWithInfo(nullptr, nothing, nullptr, nullptr, &info),
      orErrorInvalidValue);
  EXPECT_MESSAGE("info.direction 9");
}

TEST(orLaunchKernelBlockingWithInfo, LaunchMarkedAsACopyIsRecordedAsACopy) {
  const Stream stream;
  orLaunchInfo info = info_of("copy", 5);
  info.kind = orActivityMemcpy;
  info.direction = orMemcpyDeviceToHost;
  info.hostMemory = orMemoryTypeHost;
  {
    const Recording recording;
    ASSERT_OK(orLaunchKernelBlockingWithInfo(stream, nothing, nullptr, &info));
  }
  const auto copies = take().of(orActivityMemcpy);
  ASSERT_EQ(copies.size(), 1u);
  EXPECT_EQ(copies[0].direction, orMemcpyDeviceToHost);
  EXPECT_EQ(copies[0].hostMemory, orMemoryTypeHost);
  EXPECT_EQ(copies[0].bytes, 5u);
}

TEST(orLaunchMessageWithInfo, MessageIsAKernelOfThatName) {
  ASSERT_OK(orSetExecutor(&kEchoExecutor));
  const Stream stream;
  const orLaunchInfo info = info_of("a message", 3);
  {
    const Recording recording(kKernels);
    ASSERT_OK(orLaunchMessageWithInfo(
        stream, "x", 1, ignore, nullptr, nullptr, &info));
    ASSERT_OK(orStreamSynchronize(stream));
  }
  const Taken taken = take();
  ASSERT_EQ(taken.records.size(), 1u);
  EXPECT_STREQ(taken.records[0].name, "a message");
}

TEST(orLaunchMessageWithInfo, WithoutANameIsInvalidValue) {
  ASSERT_OK(orSetExecutor(&kEchoExecutor));
  const orLaunchInfo info = OPENREG_LAUNCH_INFO_INIT;
  EXPECT_EQ(
      orLaunchMessageWithInfo(nullptr, "x", 1, ignore, nullptr, nullptr, &info),
      orErrorInvalidValue);
  EXPECT_MESSAGE("name must not be null");
}

TEST(orLaunchMessageWithInfo, WithoutAnExecutorIsNotSupported) {
  const orLaunchInfo info = info_of("a message");
  EXPECT_EQ(
      orLaunchMessageWithInfo(nullptr, "x", 1, ignore, nullptr, nullptr, &info),
      orErrorNotSupported);
}

TEST(orLaunchMessageBlockingWithInfo, MessageInALaunchThatOnlySendsIsAKernel) {
  ASSERT_OK(orSetExecutor(&kEchoExecutor));
  const Stream stream;
  const orLaunchInfo message = info_of("a message");
  orLaunchInfo host = info_of("the host's side");
  host.kind = orActivityHostFunc;
  struct Arguments {
    orStream_t stream;
    const orLaunchInfo* info;
  } arguments{stream, &message};
  {
    const Recording recording(kKernels | 1U << orActivityHostFunc);
    ASSERT_OK(orLaunchKernelBlockingWithInfo(
        stream,
        [](void* p) {
          const auto& own = *static_cast<Arguments*>(p);
          EXPECT_OK(orLaunchMessageBlockingWithInfo(
              own.stream, "x", 1, ignore, nullptr, own.info));
        },
        &arguments,
        &host));
  }
  const Taken taken = take();
  const auto kernels = taken.of(orActivityKernel);
  ASSERT_EQ(kernels.size(), 1u);
  EXPECT_STREQ(kernels[0].name, "a message");
  EXPECT_EQ(kernels[0].nested, 0);
  EXPECT_EQ(taken.of(orActivityHostFunc).size(), 1u);
}

TEST(orLaunchMessageBlockingWithInfo, WithoutAnExecutorIsNotSupported) {
  const orLaunchInfo info = info_of("a message");
  EXPECT_EQ(
      orLaunchMessageBlockingWithInfo(nullptr, "x", 1, ignore, nullptr, &info),
      orErrorNotSupported);
}

TEST(orLaunchMessageBlockingWithInfo, SucceedsInOrder) {
  ASSERT_OK(orSetExecutor(&kEchoExecutor));
  const Stream stream;
  const orLaunchInfo info = info_of("a message");
  EXPECT_OK(
      orLaunchMessageBlockingWithInfo(stream, "x", 1, ignore, nullptr, &info));
}

} // namespace
