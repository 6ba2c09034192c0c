// SPDX-License-Identifier: BSD-3-Clause
// Error names, texts and the last error of a thread.
#include "support.h"

#include <set>
#include <thread>

namespace {

constexpr orError_t kAll[] = {
    orSuccess,
    orErrorUnknown,
    orErrorNotReady,
    orErrorInvalidValue,
    orErrorInvalidDevice,
    orErrorInvalidHandle,
    orErrorMemoryAllocation,
    orErrorNotPermitted,
    orErrorLaunchFailure,
    orErrorNotSupported,
    orErrorInitialization,
    orErrorIllegalAddress,
    orErrorDeviceLost,
    orErrorTimeout,
    orErrorPeerAccessAlreadyEnabled,
    orErrorPeerAccessNotEnabled,
    orErrorHostMemoryAlreadyRegistered,
    orErrorHostMemoryNotRegistered,
    orErrorStreamCaptureUnsupported,
    orErrorStreamCaptureInvalidated,
    orErrorStreamCaptureMerge,
    orErrorStreamCaptureUnmatched,
    orErrorStreamCaptureUnjoined,
    orErrorStreamCaptureIsolation,
    orErrorCapturedEvent,
    orErrorStreamCaptureWrongThread,
    orErrorAssert};

TEST(orGetErrorName, IsDifferentForEachCode) {
  std::set<std::string> names;
  for (const orError_t code : kAll) {
    names.insert(orGetErrorName(code));
  }
  EXPECT_EQ(names.size(), std::size(kAll));
  EXPECT_STREQ(orGetErrorName(orErrorNotReady), "orErrorNotReady");
}

TEST(orGetErrorName, UnknownCodeIsUnrecognized) {
  EXPECT_STREQ(
      orGetErrorName(static_cast<orError_t>(99)), "unrecognized error code");
}

TEST(orGetErrorString, IsDifferentForEachCode) {
  std::set<std::string> texts;
  for (const orError_t code : kAll) {
    texts.insert(orGetErrorString(code));
  }
  EXPECT_EQ(texts.size(), std::size(kAll));
}

TEST(orGetLastError, IsForgottenOnceRead) {
  ASSERT_EQ(orSetDevice(99), orErrorInvalidDevice);
  EXPECT_EQ(orPeekAtLastError(), orErrorInvalidDevice);
  EXPECT_EQ(orGetLastError(), orErrorInvalidDevice);
  EXPECT_EQ(orGetLastError(), orSuccess);
}

TEST(orPeekAtLastError, KeepsTheError) {
  ASSERT_EQ(orSetDevice(99), orErrorInvalidDevice);
  EXPECT_EQ(orPeekAtLastError(), orErrorInvalidDevice);
  EXPECT_EQ(orPeekAtLastError(), orErrorInvalidDevice);
  EXPECT_EQ(orGetLastError(), orErrorInvalidDevice);
  EXPECT_EQ(orPeekAtLastError(), orSuccess);
}

TEST(orGetLastError, SurvivesASuccessfulCall) {
  ASSERT_EQ(orSetDevice(99), orErrorInvalidDevice);
  ASSERT_OK(orSetDevice(0));
  EXPECT_EQ(orGetLastError(), orErrorInvalidDevice);
}

TEST(orGetLastError, BelongsToTheThread) {
  ASSERT_EQ(orSetDevice(99), orErrorInvalidDevice);
  std::thread([] {
    EXPECT_EQ(orPeekAtLastError(), orSuccess);
    EXPECT_STREQ(orGetErrorMessage(), "");
  }).join();
  EXPECT_EQ(orGetLastError(), orErrorInvalidDevice);
}

TEST(orGetLastError, IsThereInDestructorsAtTheEndOfAThread) {
  static orError_t seen;
  static std::string message;
  struct AtEnd {
    void use() {}
    ~AtEnd() {
      seen = orSetDevice(77);
      message = orGetErrorMessage();
    }
  };
  std::thread([] {
    static thread_local AtEnd at_end; // constructed before the first error
    at_end.use();
    ASSERT_EQ(orSetDevice(99), orErrorInvalidDevice);
  }).join();
  EXPECT_EQ(seen, orErrorInvalidDevice);
  EXPECT_NE(message.find("device 77"), std::string::npos) << message;
}

TEST(orGetErrorMessage, NamesFunctionValueAndAcceptedValues) {
  ASSERT_EQ(orSetDevice(7), orErrorInvalidDevice);
  EXPECT_MESSAGE("orSetDevice: device 7 does not exist");
  EXPECT_MESSAGE("0 to 1");
}

TEST(orGetErrorMessage, IsKeptUntilTheNextFailure) {
  ASSERT_EQ(orSetDevice(7), orErrorInvalidDevice);
  const char* message = orGetErrorMessage();
  ASSERT_EQ(orGetLastError(), orErrorInvalidDevice);
  ASSERT_OK(orSetDevice(0));
  EXPECT_EQ(orGetErrorMessage(), message);
  EXPECT_MESSAGE("device 7");
  ASSERT_EQ(orGetDeviceCount(nullptr), orErrorInvalidValue);
  EXPECT_MESSAGE("orGetDeviceCount");
}

TEST(orGetErrorMessage, NamesTheFunctionThatWasCalled) {
  ASSERT_EQ(orStreamCreate(nullptr), orErrorInvalidValue);
  EXPECT_MESSAGE("orStreamCreate: ");
  ASSERT_EQ(orEventCreate(nullptr), orErrorInvalidValue);
  EXPECT_MESSAGE("orEventCreate: ");
}

} // namespace
