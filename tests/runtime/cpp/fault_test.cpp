// SPDX-License-Identifier: BSD-3-Clause
// Faults when the host dereferences a device pointer.
#include "hex_digits.h"
#include "support.h"

#include <csignal>
#include <thread>

namespace {

using HostAccess = FreshProcess;

void touch(const void* pointer) {
  static_cast<void>(*static_cast<const volatile char*>(pointer));
}

void* allocate(std::size_t size) {
  void* pointer = nullptr;
  EXPECT_OK(orMalloc(&pointer, size));
  return pointer;
}

TEST_F(HostAccess, FaultNamesDeviceAndBlock) {
  EXPECT_DEATH(
      {
        EXPECT_OK(orSetDevice(1));
        touch(static_cast<char*>(allocate(1000)) + 24);
      },
      "device openreg:1 .offset 24 in the block of 1000 bytes");
}

TEST_F(HostAccess, FaultWhereNothingIsAllocated) {
  EXPECT_DEATH(
      {
        void* pointer = allocate(64);
        EXPECT_OK(orFree(pointer));
        touch(pointer);
      },
      "openreg:0 where no block is allocated");
}

TEST_F(HostAccess, FaultWhileAKernelRuns) {
  EXPECT_DEATH(
      {
        void* pointer = allocate(64);
        const Latch latch(nullptr);
        touch(pointer);
      },
      "the host dereferenced");
}

TEST_F(HostAccess, FaultOfAKernelNamesTheCallThatItNeeds) {
  EXPECT_DEATH(
      {
        void* pointer = allocate(64);
        EXPECT_OK(orLaunchKernel(nullptr, [pointer] { touch(pointer); }));
        EXPECT_OK(orStreamSynchronize(nullptr));
      },
      "a kernel dereferenced 0x" HEX_DIGITS ", a pointer to memory of device "
      "openreg:0 .offset 0 in the block of 64 bytes at 0x" HEX_DIGITS ".. In a "
      "kernel the data is at orGetKernelPointer");
}

TEST_F(HostAccess, SignalThatWasSentEndsTheProcess) {
#if defined(_WIN32)
  GTEST_SKIP() << "Windows does not send signals";
#else
  EXPECT_EXIT(
      {
        std::signal(SIGSEGV, SIG_DFL); // without a sanitizer's report
        allocate(64);
        kill(getpid(), SIGSEGV);
        std::fputs("went on", stderr);
        std::_Exit(0);
      },
      testing::KilledBySignal(SIGSEGV),
      "^$");
#endif
}

TEST_F(HostAccess, FaultAfterASignalThatTheProgramIgnoresIsExplained) {
#if defined(_WIN32)
  GTEST_SKIP() << "Windows does not send signals";
#else
  EXPECT_DEATH(
      {
        std::signal(SIGSEGV, SIG_IGN);
        void* pointer = allocate(64);
        kill(getpid(), SIGSEGV);
        touch(pointer);
      },
      "the host dereferenced");
#endif
}

TEST_F(HostAccess, FaultInAnotherThreadAfterAKernel) {
  EXPECT_DEATH(
      {
        void* pointer = allocate(64);
        char* data = kernel_pointer(static_cast<char*>(pointer));
        EXPECT_OK(orLaunchKernel(nullptr, [data] { *data = 1; }));
        EXPECT_OK(orStreamSynchronize(nullptr));
        std::thread([pointer] { touch(pointer); }).join();
      },
      "the host dereferenced");
}

TEST_F(HostAccess, FaultOnceTheBlockIsProtectedAgain) {
  EXPECT_DEATH(
      {
        void* pointer = allocate(64);
        EXPECT_OK(orMemoryUnprotect(pointer));
        touch(pointer);
        std::fputs("open ", stderr);
        EXPECT_OK(orMemoryProtect(pointer));
        touch(pointer);
      },
      "open openreg: the host dereferenced");
}

TEST_F(HostAccess, FaultOnceAnOpenBlockIsFreed) {
  EXPECT_DEATH(
      {
        void* pointer = allocate(64);
        EXPECT_OK(orMemoryUnprotect(pointer));
        EXPECT_OK(orFree(pointer));
        touch(pointer);
      },
      "where no block is allocated");
}

TEST_F(HostAccess, OtherFaultsAreNotExplained) {
  EXPECT_DEATH(
      {
        allocate(64);
        std::signal(SIGSEGV, SIG_DFL); // without a sanitizer's report
        std::raise(SIGSEGV);
      },
      "^$");
}

} // namespace
