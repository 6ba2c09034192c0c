// SPDX-License-Identifier: BSD-3-Clause
// Errors of sharing events.
#include "shared_event.h"

#if !defined(_WIN32)
#include <sys/resource.h>
#endif

namespace {

#if !defined(_WIN32)
/// Uses up the file descriptors of this process.
void use_up_files() {
  rlimit limit;
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = 3;
  setrlimit(RLIMIT_NOFILE, &limit);
}
#endif

TEST(orEventCreateWithFlags, InterprocessNeedsDisableTiming) {
  orEvent_t event = nullptr;
  EXPECT_EQ(
      orEventCreateWithFlags(&event, orEventInterprocess), orErrorInvalidValue);
  EXPECT_MESSAGE("orEventInterprocess needs orEventDisableTiming");
  EXPECT_EQ(
      orEventCreateWithFlags(&event, orEventInterprocess | orEventEnableTiming),
      orErrorInvalidValue);
  ASSERT_OK(orEventCreateWithFlags(&event, kShared));
  EXPECT_OK(orEventDestroy(event));
}

TEST(orEventCreateWithFlags, InterprocessWithoutFilesIsMemoryAllocation) {
#if defined(_WIN32)
  GTEST_SKIP() << "Windows does not limit open files";
#else
  EXPECT_TWO_PROCESSES(
      [](OtherProcess) {},
      [](OtherProcess) {
        ASSERT_OK(orInit());
        const Event first(kShared); // reads the process identity
        handle_of(first);
        use_up_files();
        orEvent_t event = nullptr;
        EXPECT_EQ(
            orEventCreateWithFlags(&event, kShared), orErrorMemoryAllocation);
        EXPECT_MESSAGE("an interprocess event needs a file");
      });
#endif
}

TEST(orEventRecord, TooManyUnreachedInterprocessRecordsAreMemoryAllocation) {
  constexpr int kMost = 1 << 14;
  const Stream stream;
  const Event event(kShared);
  for (int i = 0; i < kMost + 1; ++i) { // the idle stream reaches each
    ASSERT_OK(orEventRecord(event, stream));
  }
  Latch latch(stream);
  for (int i = 0; i < kMost; ++i) {
    ASSERT_OK(orEventRecord(event, stream));
  }
  EXPECT_EQ(orEventRecord(event, stream), orErrorMemoryAllocation);
  EXPECT_MESSAGE("16384 records of the event are pending");
  latch.release();
  ASSERT_OK(orEventSynchronize(event));
  EXPECT_OK(orEventRecord(event, stream));
}

TEST(orEventRecord, BadStreamLeavesAnInterprocessEventAsItWas) {
  const Event event(kShared);
  orStream_t destroyed = nullptr;
  ASSERT_OK(orStreamCreate(&destroyed));
  ASSERT_OK(orStreamDestroy(destroyed));
  EXPECT_EQ(orEventRecord(event, destroyed), orErrorInvalidHandle);
  EXPECT_EQ(orEventQuery(event), orSuccess);
}

TEST(orEventElapsedTime, InterprocessIsInvalidHandle) {
  const Event event(kShared);
  ASSERT_OK(orEventRecord(event, nullptr));
  float ms = 0;
  EXPECT_EQ(orEventElapsedTime(&ms, event, event), orErrorInvalidHandle);
}

TEST(orIpcGetEventHandle, WithoutAPlaceToWriteIsInvalidValue) {
  const Event event(kShared);
  EXPECT_EQ(orIpcGetEventHandle(nullptr, event), orErrorInvalidValue);
  orIpcEventHandle_t handle;
  EXPECT_OK(orIpcGetEventHandle(&handle, event));
}

TEST(orIpcGetEventHandle, OtherEventsAreInvalidHandle) {
  orIpcEventHandle_t handle;
  {
    const Event event(orEventDisableTiming);
    EXPECT_EQ(orIpcGetEventHandle(&handle, event), orErrorInvalidHandle);
    EXPECT_MESSAGE("created without orEventInterprocess");
  }
  orEvent_t event = nullptr;
  ASSERT_OK(orEventCreateWithFlags(&event, kShared));
  ASSERT_OK(orEventDestroy(event));
  EXPECT_EQ(orIpcGetEventHandle(&handle, event), orErrorInvalidHandle);
}

TEST(orIpcGetEventHandle, EventOfAnotherProcessIsInvalidHandle) {
  EXPECT_TWO_PROCESSES(offer_a_held_event, [](OtherProcess other) {
    {
      const OpenedEvent event(other);
      orIpcEventHandle_t handle;
      EXPECT_EQ(orIpcGetEventHandle(&handle, event), orErrorInvalidHandle);
      EXPECT_MESSAGE("only that process can share it");
    }
    other.signal();
    other.signal();
  });
}

TEST(orIpcOpenEventHandle, OfThisProcessIsNotPermitted) {
  const Event event(kShared);
  orEvent_t opened = nullptr;
  EXPECT_EQ(
      orIpcOpenEventHandle(&opened, handle_of(event)), orErrorNotPermitted);
  EXPECT_EQ(opened, nullptr);
}

TEST(orIpcOpenEventHandle, WrongBytesAreInvalidValue) {
  const Event event(kShared);
  const auto handle = handle_of(event);
  orEvent_t opened = nullptr;
  EXPECT_EQ(orIpcOpenEventHandle(nullptr, handle), orErrorInvalidValue);
  for (unsigned char byte = 0; byte < OPENREG_IPC_HANDLE_SIZE; ++byte) {
    orIpcEventHandle_t changed = handle;
    changed.reserved[byte] ^= 1;
    EXPECT_EQ(orIpcOpenEventHandle(&opened, changed), orErrorInvalidValue);
    EXPECT_MESSAGE("handle is not one that orIpcGetEventHandle");
  }
}

TEST(orIpcOpenEventHandle, DestroyedEventOrEndedProcessIsInvalidValue) {
  EXPECT_TWO_PROCESSES(
      [](OtherProcess other) {
        {
          const Event event(kShared);
          other.send(handle_of(event));
        }
        other.signal();
        other.wait();
      },
      [](OtherProcess other) {
        const auto handle = other.receive<orIpcEventHandle_t>();
        other.wait();
        orEvent_t event = nullptr;
        EXPECT_EQ(orIpcOpenEventHandle(&event, handle), orErrorInvalidValue);
        EXPECT_MESSAGE("has destroyed it");
        other.signal();
        other.wait_for_end();
        EXPECT_EQ(orIpcOpenEventHandle(&event, handle), orErrorInvalidValue);
        EXPECT_MESSAGE("has ended");
      });
}

TEST(orIpcOpenEventHandle, WithoutFilesIsMemoryAllocation) {
#if defined(_WIN32)
  GTEST_SKIP() << "Windows does not limit open files";
#else
  EXPECT_TWO_PROCESSES(offer_a_held_event, [](OtherProcess other) {
    const auto handle = other.receive<orIpcEventHandle_t>();
    {
      const Event own(kShared); // reads the process identity
      handle_of(own);
    }
    use_up_files();
    orEvent_t event = nullptr;
    EXPECT_EQ(orIpcOpenEventHandle(&event, handle), orErrorMemoryAllocation);
    EXPECT_MESSAGE("Too many open files");
    other.signal();
    other.signal();
  });
#endif
}

} // namespace
