// SPDX-License-Identifier: BSD-3-Clause
// Events shared by two processes.
#include "shared_event.h"

#include <thread>

namespace {

TEST(orEventRecord, InterprocessWorksInOneProcessToo) {
  const Stream stream;
  const Event event(kShared);
  EXPECT_EQ(orEventQuery(event), orSuccess);
  Latch latch(stream);
  ASSERT_OK(orEventRecord(event, stream));
  EXPECT_EQ(orEventQuery(event), orErrorNotReady);
  const Stream waiting;
  ASSERT_OK(orStreamWaitEvent(waiting, event, 0));
  EXPECT_EQ(orStreamQuery(waiting), orErrorNotReady);
  latch.release();
  EXPECT_OK(orEventSynchronize(event));
  EXPECT_OK(orStreamSynchronize(waiting));
  EXPECT_EQ(orEventQuery(event), orSuccess);
}

TEST(orIpcOpenEventHandle, OrdersTheWorkOfTwoProcesses) {
  EXPECT_TWO_PROCESSES(
      [](OtherProcess other) {
        const Stream stream;
        const Event event(kShared);
        const Block block(1);
        ASSERT_OK(orMemset(block.get(), 1, 1));
        orIpcMemHandle_t memory;
        ASSERT_OK(orIpcGetMemHandle(&memory, block.get()));
        Latch latch(stream);
        ASSERT_OK(orMemsetAsync(block.get(), 2, 1, stream));
        ASSERT_OK(orEventRecord(event, stream));
        other.send(handle_of(event));
        other.send(memory);
        other.wait();
        latch.release();
        other.wait();
      },
      [](OtherProcess other) {
        {
          orEvent_t event = nullptr;
          ASSERT_OK(orIpcOpenEventHandle(
              &event, other.receive<orIpcEventHandle_t>()));
          void* block = nullptr;
          ASSERT_OK(
              orIpcOpenMemHandle(&block, other.receive<orIpcMemHandle_t>(), 0));
          char* data = kernel_pointer(static_cast<char*>(block));
          const Stream stream;
          EXPECT_EQ(orEventQuery(event), orErrorNotReady);
          ASSERT_OK(orStreamWaitEvent(stream, event, 0));
          char seen = 0;
          ASSERT_OK(orLaunchKernel(stream, [&seen, data] { seen = *data; }));
          EXPECT_EQ(orStreamQuery(stream), orErrorNotReady);
          other.signal();
          ASSERT_OK(orStreamSynchronize(stream));
          EXPECT_EQ(seen, 2);
          EXPECT_EQ(orEventQuery(event), orSuccess);
          EXPECT_OK(orEventSynchronize(event));
          EXPECT_OK(orEventDestroy(event));
          EXPECT_OK(orIpcCloseMemHandle(block));
        }
        other.signal();
      });
}

TEST(orIpcOpenEventHandle, LetsBothRecord) {
  EXPECT_TWO_PROCESSES(
      [](OtherProcess other) {
        const Event event(kShared);
        other.send(handle_of(event));
        other.wait();
        EXPECT_EQ(orEventQuery(event), orErrorNotReady);
        other.signal();
        EXPECT_OK(orEventSynchronize(event));
        other.wait();
      },
      [](OtherProcess other) {
        {
          const OpenedEvent event(other);
          EXPECT_EQ(orEventQuery(event), orSuccess); // never recorded
          const Stream stream;
          Latch latch(stream);
          ASSERT_OK(orEventRecord(event, stream));
          other.signal();
          other.wait();
          latch.release();
          ASSERT_OK(orEventSynchronize(event));
        }
        other.signal();
      });
}

TEST(orIpcOpenEventHandle, LaterRecordDoesNotHoldWhoWaitsForTheFirst) {
  EXPECT_TWO_PROCESSES(
      [](OtherProcess other) {
        const Stream first;
        const Stream second;
        const Event event(kShared);
        Latch first_latch(first);
        Latch second_latch(second);
        ASSERT_OK(orEventRecord(event, first));
        other.send(handle_of(event));
        other.wait();
        ASSERT_OK(orEventRecord(event, second));
        first_latch.release();
        other.signal();
        other.wait();
        second_latch.release();
        other.wait();
      },
      [](OtherProcess other) {
        {
          const OpenedEvent event(other);
          const Stream stream;
          ASSERT_OK(orStreamWaitEvent(stream, event, 0));
          other.signal();
          other.wait();
          EXPECT_OK(orStreamSynchronize(stream));
          EXPECT_EQ(orEventQuery(event), orErrorNotReady);
          other.signal();
          EXPECT_OK(orEventSynchronize(event));
        }
        other.signal();
      });
}

TEST(orIpcOpenEventHandle, WaitOutlivesTheEvent) {
  EXPECT_TWO_PROCESSES(
      [](OtherProcess other) {
        const Stream stream;
        Latch latch(stream);
        {
          const Event event(kShared);
          ASSERT_OK(orEventRecord(event, stream));
          other.send(handle_of(event));
          other.wait();
        }
        other.signal();
        other.wait();
        latch.release();
        other.wait();
      },
      [](OtherProcess other) {
        {
          const OpenedEvent event(other);
          other.signal();
          other.wait();
          EXPECT_EQ(orEventQuery(event), orErrorNotReady);
          other.signal();
          EXPECT_OK(orEventSynchronize(event));
        }
        other.signal();
      });
}

TEST(orIpcOpenEventHandle, EndOfTheRecorderIsUnknownToAllWaits) {
  EXPECT_TWO_PROCESSES(offer_a_held_event, [](OtherProcess other) {
    const OpenedEvent event(other);
    const Stream stream;
    bool ran = false;
    ASSERT_OK(orStreamWaitEvent(stream, event, 0));
    ASSERT_OK(orLaunchKernel(stream, [&ran] { ran = true; }));
    std::thread killer([&other] { other.kill(); });
    EXPECT_EQ(orEventSynchronize(event), orErrorUnknown);
    EXPECT_MESSAGE(
        "process " + std::to_string(other.id()) +
        " ended before it reached the event record");
    killer.join();
    EXPECT_EQ(orEventQuery(event), orErrorUnknown);
    EXPECT_EQ(orStreamSynchronize(stream), orErrorUnknown);
    EXPECT_FALSE(ran); // like work after a failed kernel
    EXPECT_OK(orStreamSynchronize(stream));
    ASSERT_OK(orEventRecord(event, stream)); // the event can be recorded again
    EXPECT_OK(orEventSynchronize(event));
  });
}

TEST(orIpcOpenEventHandle, FailureOfTheRecorderFlowsToTheOtherProcess) {
  EXPECT_TWO_PROCESSES(
      [](OtherProcess other) {
        const Stream stream;
        const Event event(kShared);
        Latch latch(stream);
        ASSERT_OK(
            orLaunchKernel(stream, [] { throw std::runtime_error("broken"); }));
        ASSERT_OK(orEventRecord(event, stream));
        other.send(handle_of(event));
        other.wait();
        latch.release();
        EXPECT_EQ(orEventSynchronize(event), orErrorLaunchFailure);
        EXPECT_EQ(orStreamSynchronize(stream), orErrorLaunchFailure);
        other.wait();
        ASSERT_OK(orEventRecord(event, stream));
        other.signal();
        other.wait();
      },
      [](OtherProcess other) {
        const OpenedEvent event(other);
        const Stream stream;
        bool ran = false;
        ASSERT_OK(orStreamWaitEvent(stream, event, 0));
        ASSERT_OK(orLaunchKernel(stream, [&ran] { ran = true; }));
        other.signal();
        EXPECT_EQ(orEventSynchronize(event), orErrorLaunchFailure);
        EXPECT_MESSAGE(
            "in another process: a kernel threw an exception: broken");
        EXPECT_EQ(orStreamSynchronize(stream), orErrorLaunchFailure);
        EXPECT_MESSAGE("broken");
        EXPECT_FALSE(ran);
        other.signal();
        other.wait();
        EXPECT_OK(orEventSynchronize(event)) << "it was recorded again";
        other.signal();
      });
}

TEST(orIpcOpenEventHandle, FailuresOfTwoRecordsAreReportedOnceEach) {
  EXPECT_TWO_PROCESSES(
      [](OtherProcess other) {
        const Stream stream;
        const Event event(kShared);
        ASSERT_OK(orEventRecord(event, stream));
        other.send(handle_of(event));
        other.wait();
        for (const char* text : {"first", "second"}) {
          ASSERT_OK(orLaunchKernel(
              stream, [text] { throw std::runtime_error(text); }));
          ASSERT_OK(orEventRecord(event, stream));
          EXPECT_EQ(orStreamSynchronize(stream), orErrorLaunchFailure);
          other.signal();
          other.wait();
        }
      },
      [](OtherProcess other) {
        const OpenedEvent event(other);
        const Stream streams[4];
        other.signal();
        for (int record = 0; record < 2; ++record) {
          other.wait();
          ASSERT_OK(orStreamWaitEvent(streams[2 * record], event, 0));
          ASSERT_OK(orStreamWaitEvent(streams[2 * record + 1], event, 0));
          other.signal();
        }
        EXPECT_EQ(orDeviceSynchronize(), orErrorLaunchFailure);
        EXPECT_EQ(orDeviceSynchronize(), orErrorLaunchFailure);
        EXPECT_OK(orDeviceSynchronize());
      });
}

TEST(orIpcOpenEventHandle, ReachedRecordOutlivesItsProcess) {
  EXPECT_TWO_PROCESSES(offer_a_held_event, [](OtherProcess other) {
    const OpenedEvent event(other);
    other.signal();
    EXPECT_OK(orEventSynchronize(event));
    other.signal();
    other.wait_for_end();
    EXPECT_EQ(orEventQuery(event), orSuccess);
    EXPECT_OK(orEventSynchronize(event));
  });
}

TEST(orIpcOpenEventHandle, WaitEndsAtTheLimitOfTheDevice) {
  EXPECT_TWO_PROCESSES(offer_a_held_event, [](OtherProcess other) {
    {
      const OpenedEvent event(other);
      ASSERT_OK(orDeviceSetLimit(orLimitWaitTimeout, 1));
      EXPECT_EQ(orEventSynchronize(event), orErrorTimeout);
      ASSERT_OK(orDeviceSetLimit(orLimitWaitTimeout, 0));
    }
    other.signal();
    other.signal();
  });
}

TEST(orIpcOpenEventHandle, LostDeviceDoesNotWait) {
  EXPECT_TWO_PROCESSES(offer_a_held_event, [](OtherProcess other) {
    {
      const OpenedEvent event(other);
      ASSERT_OK(orStreamWaitEvent(nullptr, event, 0));
      ASSERT_OK(orDeviceReset());
      EXPECT_OK(orStreamSynchronize(nullptr));
    }
    other.signal();
    other.signal();
  });
}

} // namespace
