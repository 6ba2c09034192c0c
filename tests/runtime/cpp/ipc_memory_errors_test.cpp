// SPDX-License-Identifier: BSD-3-Clause
// Errors of sharing blocks, and the end of sharing.
#include "returned_pages.h"
#include "shared_block.h"

#include <atomic>
#include <thread>
#include <utility>
#if !defined(_WIN32)
#include <sys/resource.h>
#endif

namespace {

TEST(orIpcGetMemHandle, PointerToOtherMemoryIsInvalidValue) {
  int object = 0;
  orIpcMemHandle_t handle;
  EXPECT_EQ(orIpcGetMemHandle(&handle, &object), orErrorInvalidValue);
  EXPECT_MESSAGE("is not a device pointer");
  void* freed = nullptr;
  ASSERT_OK(orMalloc(&freed, 64));
  ASSERT_OK(orFree(freed));
  EXPECT_EQ(orIpcGetMemHandle(&handle, freed), orErrorInvalidValue);
  EXPECT_MESSAGE("is not in a live block");
}

TEST(orIpcGetMemHandle, WithoutRoomForTheNoteIsMemoryAllocation) {
#if defined(_WIN32)
  GTEST_SKIP() << "Windows has no limits of files and addresses";
#else
  EXPECT_TWO_PROCESSES(
      [](OtherProcess) {},
      [](OtherProcess) {
        const Block block(64);
        rlimit limit;
        getrlimit(RLIMIT_FSIZE, &limit);
        limit.rlim_cur = 1;
        setrlimit(RLIMIT_FSIZE, &limit);
        orIpcMemHandle_t handle;
        EXPECT_EQ(
            orIpcGetMemHandle(&handle, block.get()), orErrorMemoryAllocation);
        EXPECT_MESSAGE("the file size limit (RLIMIT_FSIZE, ulimit -f) is 1");
      });
#endif
}

TEST(orFree, OfASharedBlockNeedsNoRoomInFiles) {
#if defined(_WIN32)
  GTEST_SKIP() << "Windows has no limits of files and addresses";
#else
  EXPECT_TWO_PROCESSES(
      [](OtherProcess) {},
      [](OtherProcess) {
        void* block = nullptr;
        ASSERT_OK(orMalloc(&block, 64));
        const Block other(64);
        orIpcMemHandle_t handle;
        ASSERT_OK(orIpcGetMemHandle(&handle, block));
        ASSERT_OK(orIpcGetMemHandle(&handle, other.get()));
        rlimit limit;
        getrlimit(RLIMIT_FSIZE, &limit);
        limit.rlim_cur = 1;
        setrlimit(RLIMIT_FSIZE, &limit);
        EXPECT_OK(orFree(block));
      });
#endif
}

TEST(orDeviceReset, OfSharedBlocksMapsNothing) {
#if defined(_WIN32)
  GTEST_SKIP() << "Windows has no limits of files and addresses";
#else
  NEEDS_PAGES_TO_RETURN(); // elsewhere, zeros are written by a mapping
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "the sanitizers map memory themselves";
#endif
  EXPECT_TWO_PROCESSES(
      [](OtherProcess) {},
      [](OtherProcess) {
        ASSERT_OK(orDeviceReset()); // creates the same files as a first use
        void* block = nullptr;
        ASSERT_OK(orMalloc(&block, 64));
        orIpcMemHandle_t handle;
        ASSERT_OK(orIpcGetMemHandle(&handle, block));
        rlimit limit;
        getrlimit(RLIMIT_AS, &limit);
        const rlim_t before = std::exchange(limit.rlim_cur, 1);
        setrlimit(RLIMIT_AS, &limit);
        const orError_t error = orDeviceReset();
        limit.rlim_cur = before;
        setrlimit(RLIMIT_AS, &limit);
        EXPECT_OK(error);
      });
#endif
}

TEST(orIpcOpenMemHandle, OfThisProcessIsNotPermitted) {
  const Block block(64);
  void* pointer = nullptr;
  EXPECT_EQ(
      orIpcOpenMemHandle(&pointer, handle_of(block.get()), 0),
      orErrorNotPermitted);
  EXPECT_EQ(pointer, nullptr);
}

TEST(orIpcOpenMemHandle, WrongArgumentsAreInvalidValue) {
  const Block block(64);
  const auto handle = handle_of(block.get());
  void* pointer = nullptr;
  EXPECT_EQ(orIpcOpenMemHandle(nullptr, handle, 0), orErrorInvalidValue);
  EXPECT_EQ(orIpcOpenMemHandle(&pointer, handle, 2), orErrorInvalidValue);
  EXPECT_MESSAGE("flags 2");
  for (unsigned char byte = 0; byte < OPENREG_IPC_HANDLE_SIZE; ++byte) {
    orIpcMemHandle_t changed = handle;
    changed.reserved[byte] ^= 0x10;
    EXPECT_EQ(orIpcOpenMemHandle(&pointer, changed, 0), orErrorInvalidValue);
    EXPECT_MESSAGE("handle is not one that orIpcGetMemHandle");
  }
}

TEST(orIpcOpenMemHandle, FreedBlockIsInvalidValue) {
  EXPECT_TWO_PROCESSES(
      [](OtherProcess other) {
        void* pointer = nullptr;
        ASSERT_OK(orMalloc(&pointer, 64));
        other.send(handle_of(pointer));
        ASSERT_OK(orFree(pointer));
        {
          const Block block(64); // another block at the same address
          handle_of(block.get());
          other.signal();
          other.wait();
        }
        ASSERT_OK(orMalloc(&pointer, 64));
        other.send(handle_of(pointer));
        ASSERT_OK(orDeviceReset());
        other.signal();
        other.wait();
      },
      [](OtherProcess other) {
        for (int i = 0; i < 2; ++i) {
          const auto handle = other.receive<orIpcMemHandle_t>();
          other.wait();
          void* pointer = nullptr;
          EXPECT_EQ(
              orIpcOpenMemHandle(&pointer, handle, 0), orErrorInvalidValue);
          EXPECT_MESSAGE(
              "process " + std::to_string(other.id()) + " has freed it");
          other.signal();
        }
      });
}

TEST(orIpcOpenMemHandle, EndedProcessIsInvalidValue) {
  EXPECT_TWO_PROCESSES(
      [](OtherProcess other) {
        const Block block(64);
        other.send(handle_of(block.get()));
      },
      [](OtherProcess other) {
        const auto handle = other.receive<orIpcMemHandle_t>();
        other.wait_for_end();
        void* pointer = nullptr;
        EXPECT_EQ(orIpcOpenMemHandle(&pointer, handle, 0), orErrorInvalidValue);
        EXPECT_MESSAGE("has ended");
      });
}

TEST(orIpcOpenMemHandle, MissingDeviceIsInvalidDevice) {
  EXPECT_TWO_PROCESSES(
      [](OtherProcess other) {
        const CurrentDevice current(1);
        offer_a_block(other);
      },
      [](OtherProcess other) {
        setenv("OPENREG_DEVICE_COUNT", "1", 1);
        void* pointer = nullptr;
        EXPECT_EQ(
            orIpcOpenMemHandle(&pointer, other.receive<orIpcMemHandle_t>(), 0),
            orErrorInvalidDevice);
        EXPECT_MESSAGE("device 1 does not exist");
        other.signal();
      });
}

TEST(orIpcOpenMemHandle, WithoutRoomIsMemoryAllocation) {
  EXPECT_TWO_PROCESSES(
      [](OtherProcess other) {
        const Block block(std::size_t{16} << 20);
        other.send(handle_of(block.get()));
        other.wait();
      },
      [](OtherProcess other) {
        setenv("OPENREG_DEVICE_MEMORY", "1MiB", 1);
        void* pointer = nullptr;
        EXPECT_EQ(
            orIpcOpenMemHandle(&pointer, other.receive<orIpcMemHandle_t>(), 0),
            orErrorMemoryAllocation);
        EXPECT_MESSAGE("device 0 has no room to map 16777216 bytes");
        other.signal();
      });
}

TEST(orIpcOpenMemHandle, InMoreProcessesThanAllowedNamesTheLimit) {
#if defined(_WIN32)
  GTEST_SKIP() << "Windows does not fork";
#else
  constexpr std::size_t kMost = 60; // of systems without locks of open files
  EXPECT_TWO_PROCESSES(offer_a_block, [](OtherProcess other) {
    const auto handle = other.receive<orIpcMemHandle_t>();
    int opened[2];
    int end[2];
    ASSERT_EQ(pipe(opened), 0);
    ASSERT_EQ(pipe(end), 0);
    for (std::size_t i = 0; i < kMost; ++i) {
      if (fork() == 0) {
        close(end[1]);
        {
          const OpenedBlock block(handle);
          EXPECT_EQ(write(opened[1], ".", 1), 1);
          char none = 0;
          EXPECT_EQ(read(end[0], &none, 1), 0); // until the parent closes it
        }
        finish();
      }
    }
    for (std::size_t i = 0; i < kMost; ++i) {
      char one = 0;
      EXPECT_EQ(read(opened[0], &one, 1), 1);
    }
    void* pointer = nullptr;
    const orError_t error = orIpcOpenMemHandle(&pointer, handle, 0);
    if (std::string_view(OPENREG_PLATFORM) == "linux") {
      EXPECT_OK(error);
      EXPECT_OK(orIpcCloseMemHandle(pointer));
    } else {
      EXPECT_EQ(error, orErrorMemoryAllocation);
      EXPECT_MESSAGE("the memory block is open in 60 processes");
    }
    close(end[1]);
    for (std::size_t i = 0; i < kMost; ++i) {
      int status = -1;
      wait(&status);
      EXPECT_EQ(status, 0);
    }
    other.signal();
  });
#endif
}

TEST(orIpcOpenMemHandle, FailedDeviceKeepsItsFailure) {
  EXPECT_TWO_PROCESSES(offer_a_block, [](OtherProcess other) {
    const auto handle = other.receive<orIpcMemHandle_t>();
    void* pointer = nullptr;
    ASSERT_OK(orDeviceLose(0));
    EXPECT_EQ(orIpcOpenMemHandle(&pointer, handle, 0), orErrorDeviceLost);
    ASSERT_OK(orDeviceReset());
    {
      const InjectedFailure failure(
          {.site = orFailureLaunch, .error = orErrorIllegalAddress});
      ASSERT_OK(orLaunchKernel(orStream_t(nullptr), [] {}));
      EXPECT_EQ(orStreamSynchronize(nullptr), orErrorIllegalAddress);
    }
    EXPECT_EQ(orIpcOpenMemHandle(&pointer, handle, 0), orErrorIllegalAddress);
    ASSERT_OK(orDeviceReset());
    ASSERT_OK(orDeviceAssertFail(0, "an assertion"));
    EXPECT_EQ(orIpcOpenMemHandle(&pointer, handle, 0), orErrorAssert);
    ASSERT_OK(orDeviceReset());
    ASSERT_OK(orIpcOpenMemHandle(&pointer, handle, 0));
    ASSERT_OK(orIpcCloseMemHandle(pointer));
    other.signal();
  });
}

TEST(orIpcGetMemHandle, BlockOfAnotherProcessIsInvalidValue) {
  EXPECT_TWO_PROCESSES(offer_a_block, [](OtherProcess other) {
    {
      const OpenedBlock block(other.receive<orIpcMemHandle_t>());
      orIpcMemHandle_t handle;
      EXPECT_EQ(orIpcGetMemHandle(&handle, block.get()), orErrorInvalidValue);
      EXPECT_MESSAGE("only that process can share it");
    }
    other.signal();
  });
}

TEST(orFree, BlockOfAnotherProcessIsInvalidValue) {
  EXPECT_TWO_PROCESSES(offer_a_block, [](OtherProcess other) {
    {
      const OpenedBlock block(other.receive<orIpcMemHandle_t>());
      EXPECT_EQ(orFree(block.get()), orErrorInvalidValue);
      EXPECT_MESSAGE("orIpcCloseMemHandle");
      EXPECT_EQ(orFreeUnused(block.get()), orErrorInvalidValue);
      EXPECT_EQ(first_byte(block.get()), 1);
    }
    other.signal();
  });
}

TEST(orDeviceReset, ClosesBlocksOfOtherProcesses) {
  EXPECT_TWO_PROCESSES(offer_a_block, [](OtherProcess other) {
    const auto handle = other.receive<orIpcMemHandle_t>();
    void* pointer = nullptr;
    ASSERT_OK(orIpcOpenMemHandle(&pointer, handle, 0));
    ASSERT_OK(orIpcOpenMemHandle(&pointer, handle, 0));
    ASSERT_OK(orDeviceReset());
    EXPECT_EQ(openings(), 0u);
    EXPECT_EQ(orIpcCloseMemHandle(pointer), orErrorInvalidValue);
    const OpenedBlock again(handle);
    EXPECT_EQ(first_byte(again.get()), 1);
    other.signal();
  });
}

TEST(orIpcCloseMemHandle, WaitsForTheWorkOfTheDevice) {
  EXPECT_TWO_PROCESSES(offer_a_block, [](OtherProcess other) {
    void* pointer = nullptr;
    ASSERT_OK(
        orIpcOpenMemHandle(&pointer, other.receive<orIpcMemHandle_t>(), 0));
    char* data = kernel_pointer(static_cast<char*>(pointer));
    std::atomic<bool> ran{false};
    {
      const Stream stream;
      Latch latch(stream);
      ASSERT_OK(orLaunchKernel(stream, [&ran, data] {
        *data = 1;
        ran = true;
      }));
      std::thread releaser([&latch] { latch.release(); });
      EXPECT_OK(orIpcCloseMemHandle(pointer));
      EXPECT_TRUE(ran);
      releaser.join();
    }
    other.signal();
  });
}

TEST(orIpcCloseMemHandle, PointerThatIsNotOpenIsInvalidValue) {
  EXPECT_TWO_PROCESSES(offer_a_block, [](OtherProcess other) {
    int object = 0;
    EXPECT_EQ(orIpcCloseMemHandle(&object), orErrorInvalidValue);
    EXPECT_EQ(orIpcCloseMemHandle(nullptr), orErrorInvalidValue);
    {
      const Block block(64);
      EXPECT_EQ(orIpcCloseMemHandle(block.get()), orErrorInvalidValue);
    }
    void* pointer = nullptr;
    ASSERT_OK(
        orIpcOpenMemHandle(&pointer, other.receive<orIpcMemHandle_t>(), 0));
    EXPECT_EQ(
        orIpcCloseMemHandle(static_cast<char*>(pointer) + 1),
        orErrorInvalidValue);
    ASSERT_OK(orIpcCloseMemHandle(pointer));
    EXPECT_EQ(orIpcCloseMemHandle(pointer), orErrorInvalidValue);
    EXPECT_MESSAGE("closed already");
    other.signal();
  });
}

TEST(orIpcCloseMemHandle, InAKernelIsNotPermittedAndKeepsTheBlock) {
  EXPECT_TWO_PROCESSES(offer_a_block, [](OtherProcess other) {
    {
      const OpenedBlock block(other.receive<orIpcMemHandle_t>());
      ASSERT_OK(orLaunchKernel(nullptr, [&] {
        EXPECT_EQ(orIpcCloseMemHandle(block.get()), orErrorNotPermitted);
      }));
      ASSERT_OK(orStreamSynchronize(nullptr));
      EXPECT_EQ(first_byte(block.get()), 1);
    }
    other.signal();
  });
}

TEST(orIpcCloseMemHandle, BehindAHeldStreamIsTimeoutAndKeepsTheBlock) {
  EXPECT_TWO_PROCESSES(offer_a_block, [](OtherProcess other) {
    {
      const OpenedBlock block(other.receive<orIpcMemHandle_t>());
      {
        const Stream stream;
        const Latch latch(stream);
        ASSERT_OK(orDeviceSetLimit(orLimitWaitTimeout, 1));
        EXPECT_EQ(orIpcCloseMemHandle(block.get()), orErrorTimeout);
        ASSERT_OK(orDeviceSetLimit(orLimitWaitTimeout, 0));
      }
      EXPECT_EQ(first_byte(block.get()), 1);
    }
    other.signal();
  });
}

} // namespace
