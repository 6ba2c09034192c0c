// SPDX-License-Identifier: BSD-3-Clause
// Messages to the executor of a device in this process, and replies.
#include "support.h"

#include <atomic>
#include <string>
#if !defined(_WIN32)
#include <sys/socket.h>
#include <unistd.h>
#endif

namespace {

void set_echo() {
  ASSERT_OK(orSetExecutor(&kEchoExecutor));
}

void keep(void* args, const void* reply, size_t size) {
  static_cast<std::string*>(args)->assign(
      static_cast<const char*>(reply), size);
}

void ignore(void* /*args*/, const void* /*reply*/, size_t /*size*/) {}

constexpr const char* kName = "a test";

TEST(orSetExecutor, SameAgainDoesNothingAndAnotherIsInvalidValue) {
  ASSERT_OK(orSetExecutor(&kEchoExecutor));
  EXPECT_OK(orSetExecutor(&kEchoExecutor));
  orExecutor other = kEchoExecutor;
  other.execute = [](const void*, size_t, orReply_t, void*) { return 0; };
  EXPECT_EQ(orSetExecutor(&other), orErrorInvalidValue);
  EXPECT_MESSAGE("a process can have only one");
}

TEST(orSetExecutor, WithoutAFunctionIsInvalidValue) {
  const orExecutor executor = OPENREG_EXECUTOR_INIT;
  EXPECT_EQ(orSetExecutor(&executor), orErrorInvalidValue);
  EXPECT_MESSAGE("execute must not be null");
}

TEST(orLaunchMessage, ReplyComesInStreamOrder) {
  set_echo();
  const Stream stream;
  Latch latch(stream);
  std::string reply;
  std::atomic<int> cleaned{0};
  struct Arguments {
    std::string* reply;
    std::atomic<int>* cleaned;
  } arguments{&reply, &cleaned};
  ASSERT_OK(orLaunchMessage(
      stream,
      kName,
      "hello",
      5,
      [](void* args, const void* data, size_t size) {
        keep(static_cast<Arguments*>(args)->reply, data, size);
      },
      &arguments,
      [](void* args) { ++*static_cast<Arguments*>(args)->cleaned; }));
  EXPECT_EQ(cleaned, 0);
  latch.release();
  ASSERT_OK(orStreamSynchronize(stream));
  EXPECT_EQ(reply, "hello");
  EXPECT_EQ(cleaned, 1);
}

TEST(orLaunchMessage, FailureOfTheExecutorIsThatOfTheStream) {
  set_echo();
  const Stream stream;
  ASSERT_OK(
      orLaunchMessage(stream, kName, "fail", 4, ignore, nullptr, nullptr));
  EXPECT_EQ(orStreamSynchronize(stream), orErrorLaunchFailure);
  EXPECT_MESSAGE("the message requests a failure");
}

TEST(orLaunchMessage, WithoutAnExecutorIsNotSupported) {
  EXPECT_EQ(
      orLaunchMessage(nullptr, kName, "x", 1, ignore, nullptr, nullptr),
      orErrorNotSupported);
  EXPECT_MESSAGE("call orSetExecutor() first");
}

TEST(orLaunchMessageBlocking, ReturnsAfterTheReply) {
  set_echo();
  const Stream stream;
  std::string reply;
  ASSERT_OK(orLaunchMessageBlocking(stream, kName, "hello", 5, keep, &reply));
  EXPECT_EQ(reply, "hello");
}

TEST(orLaunchMessageBlocking, FailureOfTheExecutorIsLaunchFailure) {
  set_echo();
  const Stream stream;
  EXPECT_EQ(
      orLaunchMessageBlocking(stream, kName, "fail", 4, ignore, nullptr),
      orErrorLaunchFailure);
  EXPECT_MESSAGE("the message requests a failure");
  EXPECT_OK(orStreamSynchronize(stream));
}

TEST(orLaunchMessageBlocking, IsAPartOfAKernelOfItsStream) {
  set_echo();
  const Stream stream;
  std::string reply;
  orError_t error = orErrorUnknown;
  ASSERT_OK(orLaunchKernel(stream, [&] {
    error = orLaunchMessageBlocking(stream, kName, "in", 2, keep, &reply);
  }));
  ASSERT_OK(orStreamSynchronize(stream));
  EXPECT_EQ(error, orSuccess);
  EXPECT_EQ(reply, "in");
}

TEST(orLaunchMessageBlocking, WithoutAnExecutorIsNotSupported) {
  EXPECT_EQ(
      orLaunchMessageBlocking(nullptr, kName, "x", 1, ignore, nullptr),
      orErrorNotSupported);
}

TEST(orSetDeviceLauncher, TakesAProgramAndItsArguments) {
  const char* const arguments[] = {"program", "argument"};
  EXPECT_OK(orSetDeviceLauncher(arguments, 2));
  EXPECT_OK(orSetDeviceLauncher(arguments, 0));
}

TEST(orSetDeviceLauncher, NullArgumentIsInvalidValue) {
  const char* const arguments[] = {"program", nullptr};
  EXPECT_EQ(orSetDeviceLauncher(arguments, 2), orErrorInvalidValue);
}

#if !defined(_WIN32)
/// A socket whose other end is closed.
int closed_socket() {
  int sockets[2];
  EXPECT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, sockets), 0);
  close(sockets[0]);
  return sockets[1];
}

/// The view of one device with `size` bytes.
orMemoryView view_of(size_t size) {
  auto* begin = reinterpret_cast<void*>(uintptr_t{1} << 40);
  auto* end = reinterpret_cast<void*>((uintptr_t{1} << 40) + (1 << 20));
  return {begin, end, begin, size, 0};
}
#endif

TEST(orServeDevice, ServesUntilTheSocketCloses) {
#if defined(_WIN32)
  GTEST_SKIP() << "devices in separate processes are not available on Windows";
#else
  const orMemoryView view = view_of(1 << 16);
  EXPECT_EQ(
      fork_and_run([&view] {
        const int socket = closed_socket();
        EXPECT_OK(orServeDevice(socket, &view, nullptr));
        EXPECT_EQ(close(socket), 0); // it belongs to the caller
        return ::testing::Test::HasFailure() ? 1 : 0;
      }),
      0);
#endif
}

TEST(orServeDevice, WithoutAViewIsInvalidValue) {
  EXPECT_EQ(orServeDevice(0, nullptr, nullptr), orErrorInvalidValue);
  EXPECT_MESSAGE("view must not be null");
}

TEST(orServeDevice, MemoryThatTheSystemDoesNotHaveIsMemoryAllocation) {
#if defined(_WIN32)
  GTEST_SKIP() << "devices in separate processes are not available on Windows";
#else
  const orMemoryView view = view_of(~size_t{0} >> 1);
  EXPECT_EQ(
      fork_and_run([&view] {
        const int socket = closed_socket();
        EXPECT_EQ(
            orServeDevice(socket, &view, nullptr), orErrorMemoryAllocation);
        return ::testing::Test::HasFailure() ? 1 : 0;
      }),
      0);
#endif
}

} // namespace
