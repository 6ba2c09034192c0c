// SPDX-License-Identifier: BSD-3-Clause
// Graphs: what a launch runs, in which order, and destruction.
#include "graph.h"

#include <atomic>
#include <cstring>
#include <fstream>
#include <sstream>

namespace {

TEST(orGraphLaunch, RunsTheCommandsEachTimeInTheirOrder) {
  const Stream stream;
  std::string order;
  Captured captured(stream);
  enqueue(stream, [&order] { order += 'a'; });
  enqueue(stream, [&order] { order += 'b'; });
  ASSERT_OK(captured.end());
  const Stream other;
  ASSERT_OK(orGraphLaunch(captured.graph(), stream));
  ASSERT_OK(orGraphLaunch(captured.graph(), other));
  ASSERT_OK(orGraphLaunch(captured.graph(), nullptr));
  ASSERT_OK(orDeviceSynchronize());
  EXPECT_EQ(order, "ababab");
}

TEST(orGraphLaunch, WaitsForTheLastLaunchOnAnotherStream) {
  const Stream stream;
  const Stream other;
  Signal go;
  std::atomic<int> running{0};
  std::atomic<int> most{0};
  std::atomic<int> runs{0};
  Captured captured(stream);
  enqueue(stream, [&] {
    most = std::max(most.load(), ++running);
    if (runs++ == 0) {
      go.wait();
    }
    --running;
  });
  ASSERT_OK(captured.end());
  ASSERT_OK(orGraphLaunch(captured.graph(), stream));
  ASSERT_OK(orGraphLaunch(captured.graph(), other));
  EXPECT_EQ(orStreamQuery(other), orErrorNotReady);
  go.set();
  ASSERT_OK(orDeviceSynchronize());
  EXPECT_EQ(runs, 2);
  EXPECT_EQ(most, 1);
}

TEST(orGraphLaunch, RunsCopiesSetsMessagesAndFunctionsOfTheHost) {
  ASSERT_OK(orSetExecutor(&kEchoExecutor));
  const Stream stream;
  const Block block(64);
  const PinnedBlock from(64);
  const PinnedBlock to(64);
  std::string said;
  int calls = 0;
  Captured captured(stream);
  ASSERT_OK(
      orMemcpyAsync(block.get(), from.get(), 64, orMemcpyHostToDevice, stream));
  ASSERT_OK(orMemsetAsync(block.get(), 7, 1, stream));
  ASSERT_OK(
      orMemcpyAsync(to.get(), block.get(), 64, orMemcpyDeviceToHost, stream));
  ASSERT_OK(orLaunchMessage(
      stream,
      "echo",
      "ab",
      2,
      [](void* args, const void* reply, size_t size) {
        static_cast<std::string*>(args)->append(
            static_cast<const char*>(reply), size);
      },
      &said,
      nullptr));
  ASSERT_OK(orLaunchHostFunc(
      stream, [](void* data) { ++*static_cast<int*>(data); }, &calls, nullptr));
  ASSERT_OK(captured.end());
  std::size_t count = 0;
  ASSERT_OK(orGraphGetNodeCount(captured.graph(), &count));
  EXPECT_EQ(count, 5u);
  for (const char value : {1, 2}) {
    std::memset(from.get(), value, 64);
    ASSERT_OK(orGraphLaunch(captured.graph(), stream));
    ASSERT_OK(orStreamSynchronize(stream));
    EXPECT_EQ(to.get()[0], 7);
    EXPECT_EQ(to.get()[63], value);
  }
  EXPECT_EQ(said, "abab");
  EXPECT_EQ(calls, 2);
}

TEST(orGraphLaunch, OrdersForkedStreamsAlsoOfTwoDevices) {
  const Stream stream;
  const Event fork;
  const Event join;
  orStream_t other = nullptr;
  {
    const CurrentDevice device(1);
    ASSERT_OK(orStreamCreate(&other));
  }
  std::vector<int> order;
  int device_of_other = -1;
  Captured captured(stream);
  enqueue(stream, [&] { order.push_back(1); });
  ASSERT_OK(orEventRecord(fork, stream));
  ASSERT_OK(orStreamWaitEvent(other, fork, 0));
  enqueue(other, [&] {
    EXPECT_OK(orGetDevice(&device_of_other));
    order.push_back(2);
  });
  ASSERT_OK(orEventRecord(join, other));
  ASSERT_OK(orStreamWaitEvent(stream, join, 0));
  enqueue(stream, [&] { order.push_back(3); });
  ASSERT_OK(captured.end());
  EXPECT_EQ(status_of(other), orStreamCaptureStatusNone);
  ASSERT_OK(orGraphLaunch(captured.graph(), stream));
  ASSERT_OK(orGraphLaunch(captured.graph(), stream));
  ASSERT_OK(orStreamSynchronize(stream));
  EXPECT_EQ(order, (std::vector<int>{1, 2, 3, 1, 2, 3}));
  EXPECT_EQ(device_of_other, 1);
  ASSERT_OK(orStreamDestroy(other));
}

TEST(orGraphLaunch, RunsForkedStreamsAtTheSameTime) {
  const Stream stream;
  const Stream other;
  const Event fork;
  const Event join;
  Signal one;
  Signal two;
  Captured captured(stream);
  ASSERT_OK(orEventRecord(fork, stream));
  ASSERT_OK(orStreamWaitEvent(other, fork, 0));
  enqueue(stream, [&] {
    one.set();
    two.wait();
  });
  enqueue(other, [&] {
    two.set();
    one.wait();
  });
  ASSERT_OK(orEventRecord(join, other));
  ASSERT_OK(orStreamWaitEvent(stream, join, 0));
  ASSERT_OK(captured.end());
  ASSERT_OK(orGraphLaunch(captured.graph(), stream));
  ASSERT_OK(orStreamSynchronize(stream));
}

TEST(FullStream, TakesAPartOfAGraphThatTheNextLaunchWaitsFor) {
  const Stream stream;
  const Stream side;
  const Stream other;
  const Event forked;
  const Event joined;
  std::string order;
  Captured captured(stream);
  enqueue(stream, [&order] { order += 'a'; });
  ASSERT_OK(orEventRecord(forked, stream));
  ASSERT_OK(orStreamWaitEvent(side, forked, 0));
  enqueue(side, [&order] { order += 'b'; });
  ASSERT_OK(orEventRecord(joined, side));
  ASSERT_OK(orStreamWaitEvent(stream, joined, 0));
  enqueue(stream, [&order] { order += 'c'; });
  ASSERT_OK(captured.end());
  auto latch = std::make_unique<Latch>(stream);
  for (int i = 0; i < 16384 - 1; ++i) { // leaves room for one command
    ASSERT_OK(orLaunchKernel(stream, [] {}));
  }
  ASSERT_OK(orDeviceSetLimit(orLimitWaitTimeout, 20));
  EXPECT_EQ(orGraphLaunch(captured.graph(), stream), orErrorTimeout);
  ASSERT_OK(orGraphLaunch(captured.graph(), other));
  EXPECT_EQ(orStreamSynchronize(other), orErrorTimeout);
  ASSERT_OK(orDeviceSetLimit(orLimitWaitTimeout, 0));
  latch.reset();
  ASSERT_OK(orDeviceSynchronize());
  EXPECT_EQ(order, "ababc");
}

TEST(orGraphLaunch, LeavesTheFailureOfAKernelAndDropsTheNextOnes) {
  const Stream stream;
  int runs = 0;
  Captured captured(stream);
  enqueue(stream, [] { throw std::runtime_error("out of luck"); });
  enqueue(stream, [&runs] { ++runs; });
  ASSERT_OK(captured.end());
  for (int launch = 1; launch < 3; ++launch) {
    ASSERT_OK(orGraphLaunch(captured.graph(), stream));
    EXPECT_EQ(orStreamSynchronize(stream), orErrorLaunchFailure);
    EXPECT_MESSAGE("out of luck");
    EXPECT_OK(orStreamSynchronize(stream));
    EXPECT_EQ(runs, 0) << launch;
  }
}

TEST(orGraphLaunch, PassesTheFailureOfABranchOnAndRunsAgainOnceItIsReported) {
  const Stream stream;
  const Stream side;
  const Event fork;
  const Event join;
  bool fails = true;
  int runs = 0;
  Captured captured(stream);
  ASSERT_OK(orEventRecord(fork, stream));
  ASSERT_OK(orStreamWaitEvent(side, fork, 0));
  enqueue(side, [&fails] {
    if (fails) {
      throw std::runtime_error("out of luck");
    }
  });
  ASSERT_OK(orEventRecord(join, side));
  ASSERT_OK(orStreamWaitEvent(stream, join, 0));
  enqueue(stream, [&runs] { ++runs; });
  ASSERT_OK(captured.end());
  ASSERT_OK(orGraphLaunch(captured.graph(), stream));
  ASSERT_OK(orGraphLaunch(captured.graph(), stream));
  EXPECT_EQ(orStreamSynchronize(stream), orErrorLaunchFailure);
  EXPECT_MESSAGE("out of luck");
  EXPECT_EQ(runs, 0);
  EXPECT_OK(orDeviceSynchronize()) << "the branch keeps nothing";
  fails = false;
  ASSERT_OK(orGraphLaunch(captured.graph(), stream));
  EXPECT_OK(orStreamSynchronize(stream));
  EXPECT_EQ(runs, 1);
}

TEST(orGraphLaunch, OnAnotherStreamFailsWithTheLastLaunch) {
  const Stream stream;
  const Stream other;
  bool fails = true;
  Captured captured(stream);
  enqueue(stream, [&fails] {
    if (std::exchange(fails, false)) {
      throw std::runtime_error("out of luck");
    }
  });
  ASSERT_OK(captured.end());
  ASSERT_OK(orGraphLaunch(captured.graph(), stream));
  ASSERT_OK(orGraphLaunch(captured.graph(), other));
  EXPECT_EQ(orStreamSynchronize(other), orErrorLaunchFailure);
  EXPECT_EQ(orStreamSynchronize(stream), orErrorLaunchFailure);
  ASSERT_OK(orGraphLaunch(captured.graph(), stream));
  EXPECT_OK(orStreamSynchronize(stream));
}

TEST(orGraphLaunch, CountsItsCommandsForAnInjectedFailure) {
  const Stream stream;
  int runs = 0;
  Captured captured(stream);
  enqueue(stream, [&runs] { ++runs; });
  enqueue(stream, [&runs] { ++runs; });
  ASSERT_OK(captured.end());
  const InjectedFailure failure(
      {.site = orFailureLaunch, .first = 2, .period = 0});
  ASSERT_OK(orGraphLaunch(captured.graph(), stream));
  EXPECT_EQ(orStreamSynchronize(stream), orErrorLaunchFailure);
  EXPECT_EQ(runs, 1);
  EXPECT_EQ(failure.calls(), 2u);
}

TEST(orGraphLaunch, RefusesAStreamOfAnotherDeviceAndACapturedOne) {
  const Stream stream;
  Captured captured(stream);
  ASSERT_OK(captured.end());
  orStream_t other = nullptr;
  ASSERT_OK(orStreamGetDefault(&other, 1));
  EXPECT_EQ(orGraphLaunch(captured.graph(), other), orErrorInvalidValue);
  EXPECT_MESSAGE("expected a stream of device 0");
  Captured again(stream);
  EXPECT_EQ(orGraphLaunch(captured.graph(), stream), orErrorNotSupported);
  EXPECT_OK(again.end());
}

TEST(orGraphLaunch, AfterAResetIsDeviceLost) {
  orStream_t stream = nullptr;
  ASSERT_OK(orStreamCreate(&stream));
  ASSERT_OK(orStreamBeginCapture(stream, orStreamCaptureModeGlobal));
  enqueue(stream, [] {});
  orGraph_t graph = nullptr;
  ASSERT_OK(orStreamEndCapture(stream, &graph));
  ASSERT_OK(orDeviceReset());
  EXPECT_EQ(orGraphLaunch(graph, nullptr), orErrorDeviceLost);
  EXPECT_MESSAGE("graph was captured before device 0 was reset");
  EXPECT_OK(orGraphDestroy(graph));
}

TEST(orGraphDestroy, FreesArgumentBlocksAfterTheLastLaunch) {
  const Stream stream;
  const auto alive = std::make_shared<int>(0);
  {
    Captured captured(stream);
    enqueue(stream, [alive] { ++*alive; });
    ASSERT_OK(captured.end());
    EXPECT_EQ(alive.use_count(), 2);
    Latch latch(stream);
    ASSERT_OK(orGraphLaunch(captured.graph(), stream));
    ASSERT_OK(orGraphLaunch(captured.graph(), stream));
  }
  ASSERT_OK(orStreamSynchronize(stream));
  EXPECT_EQ(*alive, 2);
  EXPECT_EQ(alive.use_count(), 1);
}

TEST(orStreamEndCapture, FreesArgumentBlocksOfAFailedCapture) {
  const Stream stream;
  const auto alive = std::make_shared<int>(0);
  {
    Captured captured(stream);
    enqueue(stream, [alive] {});
    EXPECT_EQ(orStreamQuery(stream), orErrorStreamCaptureUnsupported);
    EXPECT_EQ(captured.end(), orErrorStreamCaptureInvalidated);
  }
  EXPECT_EQ(alive.use_count(), 1);
}

TEST(orGraphDestroy, EndsTheHandle) {
  const Stream stream;
  ASSERT_OK(orStreamBeginCapture(stream, orStreamCaptureModeGlobal));
  orGraph_t graph = nullptr;
  ASSERT_OK(orStreamEndCapture(stream, &graph));
  orResourceUsage usage = OPENREG_RESOURCE_USAGE_INIT;
  ASSERT_OK(orGetResourceUsage(&usage));
  const std::size_t graphs = usage.graphs;
  ASSERT_OK(orGraphDestroy(graph));
  ASSERT_OK(orGetResourceUsage(&usage));
  EXPECT_EQ(usage.graphs + 1, graphs);
  EXPECT_EQ(orGraphDestroy(graph), orErrorInvalidHandle);
}

TEST(orGraphDebugDotPrint, WritesCommandsAndTheirOrder) {
  const Stream stream;
  const Block block(64);
  Captured captured(stream);
  enqueue(stream, [] {});
  ASSERT_OK(orMemsetAsync(block.get(), 7, 64, stream));
  ASSERT_OK(captured.end());
  const std::string path = testing::TempDir() + "graph.dot";
  ASSERT_OK(orGraphDebugDotPrint(captured.graph(), path.c_str()));
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  EXPECT_EQ(
      text.str(),
      "digraph graph {\n"
      "  stream0_0 [label=\"kernel, device 0\"];\n"
      "  stream0_1 [label=\"set of 64 bytes, device 0\"];\n"
      "  stream0_0 -> stream0_1;\n"
      "}\n");
  EXPECT_EQ(
      orGraphDebugDotPrint(captured.graph(), "/missing/folder/graph.dot"),
      orErrorInvalidValue);
}

TEST(orGraphGetNodeCount, OfAnEmptyGraphIsZero) {
  const Stream stream;
  Captured captured(stream);
  ASSERT_OK(captured.end());
  std::size_t count = 1;
  ASSERT_OK(orGraphGetNodeCount(captured.graph(), &count));
  EXPECT_EQ(count, 0u);
}

} // namespace
