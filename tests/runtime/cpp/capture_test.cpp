// SPDX-License-Identifier: BSD-3-Clause
// Captures: accepted and refused calls, and how a capture ends.
#include "graph.h"

#include <thread>

namespace {

void nothing(void*) {}

/// Returns the result of the capture's end after `call` on its stream returned
/// `error`, as for every refused call.
template <typename Call>
void expect_refused(orError_t error, const Call& call) {
  const Stream stream;
  Captured captured(stream);
  EXPECT_EQ(call(orStream_t(stream)), error);
  EXPECT_EQ(status_of(stream), orStreamCaptureStatusInvalidated);
  EXPECT_EQ(
      orLaunchKernel(stream, nothing, nullptr, nullptr),
      orErrorStreamCaptureInvalidated);
  EXPECT_EQ(captured.end(), orErrorStreamCaptureInvalidated);
  EXPECT_EQ(captured.graph(), nullptr);
  EXPECT_EQ(status_of(stream), orStreamCaptureStatusNone);
  EXPECT_OK(orStreamSynchronize(stream));
}

TEST(orStreamBeginCapture, RunsNothingOfTheStream) {
  const Stream stream;
  int runs = 0;
  ASSERT_OK(orStreamBeginCapture(stream, orStreamCaptureModeGlobal));
  enqueue(stream, [&runs] { ++runs; });
  orGraph_t graph = nullptr;
  ASSERT_OK(orStreamEndCapture(stream, &graph));
  ASSERT_OK(orStreamSynchronize(stream));
  EXPECT_EQ(runs, 0);
  EXPECT_OK(orGraphDestroy(graph));
}

TEST(orStreamBeginCapture, LeavesWorkThatTheStreamHasToIt) {
  const Stream stream;
  Latch latch(stream);
  int runs = 0;
  enqueue(stream, [&runs] { ++runs; });
  Captured captured(stream);
  ASSERT_OK(captured.end());
  latch.release();
  ASSERT_OK(orStreamSynchronize(stream));
  EXPECT_EQ(runs, 1);
}

TEST(orStreamBeginCapture, RefusesTheDefaultStreamAndOneThatIsCaptured) {
  EXPECT_EQ(
      orStreamBeginCapture(nullptr, orStreamCaptureModeGlobal),
      orErrorStreamCaptureUnsupported);
  EXPECT_MESSAGE("operation not permitted when stream is capturing");
  const Stream stream;
  Captured captured(stream);
  EXPECT_EQ(
      orStreamBeginCapture(stream, orStreamCaptureModeGlobal),
      orErrorInvalidValue);
  EXPECT_MESSAGE("stream is already being captured");
  EXPECT_EQ(
      orStreamBeginCapture(stream, static_cast<orStreamCaptureMode>(3)),
      orErrorInvalidValue);
  EXPECT_MESSAGE("mode 3 is not orStreamCaptureModeGlobal");
  EXPECT_OK(captured.end());
}

TEST(orStreamEndCapture, WritesAGraphUnlessTheCaptureFailed) {
  const Stream stream;
  orGraph_t graph = nullptr;
  ASSERT_OK(orStreamBeginCapture(stream, orStreamCaptureModeGlobal));
  EXPECT_EQ(orStreamQuery(stream), orErrorStreamCaptureUnsupported);
  EXPECT_EQ(
      orStreamEndCapture(stream, &graph), orErrorStreamCaptureInvalidated);
  EXPECT_EQ(graph, nullptr);
  ASSERT_OK(orStreamBeginCapture(stream, orStreamCaptureModeGlobal));
  EXPECT_OK(orStreamEndCapture(stream, &graph));
  EXPECT_NE(graph, nullptr);
  EXPECT_OK(orGraphDestroy(graph));
}

TEST(orStreamEndCapture, RefusesAStreamThatIsNotCaptured) {
  orStream_t ended = nullptr;
  ASSERT_OK(orStreamCreate(&ended));
  ASSERT_OK(orStreamDestroy(ended));
  const Stream stream;
  orGraph_t graph = nullptr;
  EXPECT_EQ(orStreamEndCapture(ended, &graph), orErrorInvalidHandle);
  EXPECT_EQ(orStreamEndCapture(stream, &graph), orErrorInvalidValue);
  EXPECT_MESSAGE("is not being captured");
}

TEST(orStreamEndCapture, FailsAfterACallThatWaitsForTheStream) {
  expect_refused(orErrorStreamCaptureUnsupported, [](orStream_t stream) {
    return orStreamSynchronize(stream);
  });
  expect_refused(orErrorStreamCaptureUnsupported, [](orStream_t stream) {
    return orStreamQuery(stream);
  });
  expect_refused(orErrorStreamCaptureUnsupported, [](orStream_t stream) {
    return orLaunchKernelBlocking(stream, nothing, nullptr);
  });
  expect_refused(orErrorStreamCaptureUnsupported, [](orStream_t) {
    return orDeviceSynchronize();
  });
  const Block block(64);
  char pageable[64] = {};
  expect_refused(orErrorStreamCaptureUnsupported, [&](orStream_t stream) {
    return orMemcpyAsync(
        block.get(), pageable, 64, orMemcpyHostToDevice, stream);
  });
  expect_refused(orErrorStreamCaptureUnsupported, [&](orStream_t) {
    return orMemset(block.get(), 1, 64);
  });
  expect_refused(orErrorStreamCaptureUnsupported, [&](orStream_t) {
    return orMemcpy(block.get(), pageable, 64, orMemcpyHostToDevice);
  });
  expect_refused(orErrorStreamCaptureUnsupported, [](orStream_t stream) {
    void* pointer = nullptr;
    return orMallocAsync(&pointer, 64, stream);
  });
  expect_refused(orErrorStreamCaptureUnsupported, [](orStream_t stream) {
    const Event event(orEventInterprocess | orEventDisableTiming);
    return orEventRecord(event, stream);
  });
}

TEST(orStreamEndCapture, NamesTheCallThatInvalidatedTheCapture) {
  const Stream stream;
  Captured captured(stream);
  EXPECT_EQ(orStreamQuery(stream), orErrorStreamCaptureUnsupported);
  EXPECT_EQ(captured.end(), orErrorStreamCaptureInvalidated);
  EXPECT_MESSAGE("operation failed due to a previous error during capture");
  EXPECT_MESSAGE("a captured stream was queried");
}

TEST(orStreamEndCapture, RefusesAnotherStreamAndAnotherThread) {
  const Stream stream;
  const Stream other;
  const Event event;
  Captured captured(stream);
  ASSERT_OK(orEventRecord(event, stream));
  ASSERT_OK(orStreamWaitEvent(other, event, 0));
  orGraph_t graph = nullptr;
  EXPECT_EQ(orStreamEndCapture(other, &graph), orErrorStreamCaptureUnmatched);
  std::thread([&] {
    EXPECT_EQ(
        orStreamEndCapture(stream, &graph), orErrorStreamCaptureWrongThread);
  }).join();
  EXPECT_EQ(status_of(stream), orStreamCaptureStatusActive);
  EXPECT_OK(captured.end());
}

TEST(orStreamEndCapture, OfARelaxedCaptureWorksInAnotherThread) {
  const Stream stream;
  Captured captured(stream, orStreamCaptureModeRelaxed);
  std::thread([&] { EXPECT_OK(captured.end()); }).join();
}

TEST(orStreamEndCapture, RefusesWorkOfAStreamThatWasNotWaitedFor) {
  const Stream stream;
  const Stream other;
  const Event event;
  ASSERT_OK(orStreamBeginCapture(stream, orStreamCaptureModeGlobal));
  ASSERT_OK(orEventRecord(event, stream));
  ASSERT_OK(orStreamWaitEvent(other, event, 0));
  ASSERT_OK(orLaunchKernel(other, nothing, nullptr, nullptr));
  orGraph_t graph = nullptr;
  EXPECT_EQ(orStreamEndCapture(stream, &graph), orErrorStreamCaptureUnjoined);
  EXPECT_EQ(status_of(other), orStreamCaptureStatusNone);
}

TEST(orStreamWaitEvent, RefusesToMakeTheDefaultStreamAPartOfACapture) {
  const Stream stream;
  const Event event;
  ASSERT_OK(orStreamBeginCapture(stream, orStreamCaptureModeGlobal));
  ASSERT_OK(orEventRecord(event, stream));
  EXPECT_EQ(
      orStreamWaitEvent(nullptr, event, 0), orErrorStreamCaptureUnsupported);
  EXPECT_MESSAGE("the default stream of device 0 cannot wait");
  orGraph_t graph = nullptr;
  EXPECT_EQ(
      orStreamEndCapture(stream, &graph), orErrorStreamCaptureInvalidated);
}

TEST(orStreamWaitEvent, OfUncapturedWorkIsIsolation) {
  const Stream stream;
  const Stream other;
  const Event event;
  ASSERT_OK(orEventRecord(event, other));
  Captured captured(stream);
  const orError_t error = orStreamWaitEvent(stream, event, 0);
  EXPECT_EQ(error, orErrorStreamCaptureIsolation);
  EXPECT_EQ(captured.end(), orErrorStreamCaptureInvalidated);
}

TEST(orStreamWaitEvent, OfAnotherCaptureIsAMerge) {
  const Stream stream;
  const Stream other;
  const Event event;
  Captured captured(stream);
  Captured other_captured(other);
  ASSERT_OK(orEventRecord(event, other));
  const orError_t error = orStreamWaitEvent(stream, event, 0);
  EXPECT_EQ(error, orErrorStreamCaptureMerge);
  EXPECT_EQ(captured.end(), orErrorStreamCaptureInvalidated);
  EXPECT_EQ(other_captured.end(), orErrorStreamCaptureInvalidated);
}

TEST(orEventQuery, OfACapturedRecordIsCapturedEvent) {
  const Stream stream;
  const Event event;
  Captured captured(stream);
  ASSERT_OK(orEventRecord(event, stream));
  orError_t error = orEventQuery(event);
  EXPECT_EQ(error, orErrorCapturedEvent);
  EXPECT_MESSAGE("on an event last recorded in a capturing stream");
  error = orEventSynchronize(event);
  EXPECT_EQ(error, orErrorCapturedEvent);
  EXPECT_EQ(captured.end(), orErrorStreamCaptureInvalidated);
  const Stream after;
  error = orStreamWaitEvent(after, event, 0);
  EXPECT_EQ(error, orErrorCapturedEvent);
}

TEST(orDeviceSynchronize, IsRefusedByTheModeOfTheCapture) {
  const auto in_another_thread = [] {
    orError_t error = orSuccess;
    std::thread([&error] { error = orDeviceSynchronize(); }).join();
    return error;
  };
  const Stream stream;
  {
    Captured captured(stream);
    EXPECT_EQ(in_another_thread(), orErrorStreamCaptureUnsupported);
    EXPECT_EQ(captured.end(), orErrorStreamCaptureInvalidated);
  }
  {
    Captured captured(stream, orStreamCaptureModeThreadLocal);
    EXPECT_EQ(in_another_thread(), orSuccess);
    EXPECT_OK(captured.end());
  }
  Captured captured(stream, orStreamCaptureModeRelaxed);
  const orError_t error = orDeviceSynchronize();
  EXPECT_EQ(error, orSuccess);
  EXPECT_OK(captured.end());
}

TEST(orStreamDestroy, OfACapturedStreamFailsTheCapture) {
  const Stream stream;
  orStream_t other = nullptr;
  ASSERT_OK(orStreamCreate(&other));
  const Event event;
  Captured captured(stream);
  ASSERT_OK(orEventRecord(event, stream));
  ASSERT_OK(orStreamWaitEvent(other, event, 0));
  ASSERT_OK(orStreamDestroy(other));
  EXPECT_EQ(captured.end(), orErrorStreamCaptureInvalidated);
}

TEST(orStreamGetCaptureInfo, ReturnsADifferentIdForEachCapture) {
  const Stream stream;
  const auto number = [&stream] {
    orStreamCaptureStatus status = orStreamCaptureStatusNone;
    std::uint64_t id = 0;
    EXPECT_OK(orStreamGetCaptureInfo(stream, &status, &id));
    return id;
  };
  EXPECT_EQ(number(), 0u);
  std::uint64_t first = 0;
  {
    const Captured captured(stream);
    first = number();
    EXPECT_NE(first, 0u);
  }
  const Captured captured(stream);
  EXPECT_NE(number(), first);
}

} // namespace
