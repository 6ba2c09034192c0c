// SPDX-License-Identifier: BSD-3-Clause
// OPENREG_MEMORY_CHECK: kernels that access memory outside live blocks.
#include "hex_digits.h"
#include "returned_pages.h"
#include "support.h"

#include <algorithm>
#include <csignal>
#include <fstream>
#include <sstream>

namespace {

using MemoryCheck = FreshProcess;

constexpr std::size_t kMiB = std::size_t{1} << 20;

void turn_on(const char* device_memory = "1GiB") {
  setenv("OPENREG_MEMORY_CHECK", "1", 1);
  setenv("OPENREG_DEVICE_MEMORY", device_memory, 1);
}

char* allocate(std::size_t size) {
  void* pointer = nullptr;
  EXPECT_OK(orMalloc(&pointer, size));
  return static_cast<char*>(pointer);
}

/// Makes a kernel of the current device write to `data`.
void write_in_kernel(char* data) {
  EXPECT_OK(orLaunchKernel(
      orStream_t(nullptr), [data] { *static_cast<volatile char*>(data) = 1; }));
  EXPECT_OK(orDeviceSynchronize());
}

/// Matches "<kernel pointer> <device pointer> " before a fault that names both.
class NamesTheAddresses : public testing::MatcherInterface<const std::string&> {
 public:
  bool MatchAndExplain(const std::string& text, testing::MatchResultListener*)
      const override {
    std::istringstream words(text);
    std::string kernel;
    std::string device;
    words >> kernel >> device;
    return text.find(
               "a kernel reached " + kernel + ", the kernel pointer of " +
               device + " on device") != std::string::npos;
  }
  void DescribeTo(std::ostream* out) const override {
    *out << "names the addresses";
  }
};

TEST_F(MemoryCheck, KernelThatTouchesAFreedBlockFaults) {
  EXPECT_DEATH(
      {
        turn_on();
        EXPECT_OK(orSetDevice(1));
        char* pointer = allocate(1000);
        char* data = kernel_pointer(pointer);
        write_in_kernel(data + 24);
        EXPECT_OK(orFree(pointer));
        std::fputs("freed ", stderr);
        write_in_kernel(data + 24);
      },
      "^freed openreg: a kernel reached 0x" HEX_DIGITS
      ", the kernel pointer of "
      "0x" HEX_DIGITS
      " on device openreg:1 .offset 24 in the block of 1000 bytes "
      "at 0x" HEX_DIGITS ", which was freed.\\.\n");
}

TEST_F(MemoryCheck, FaultNamesTheAddresses) {
  EXPECT_DEATH(
      {
        turn_on();
        void* pointer = allocate(1);
        void* data = kernel_pointer(pointer);
        EXPECT_OK(orFree(pointer));
        std::fprintf(
            stderr,
            "0x%zx 0x%zx ",
            reinterpret_cast<std::uintptr_t>(data),
            reinterpret_cast<std::uintptr_t>(pointer));
        write_in_kernel(static_cast<char*>(data));
      },
      testing::MakeMatcher(new NamesTheAddresses));
}

TEST_F(MemoryCheck, FaultEndsTheProcessWithSegmentationFault) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  const auto ended = [](int status) { return status != 0; }; // by the handler
#else
  const auto ended = ended_by_fault;
#endif
  EXPECT_EXIT(
      {
        turn_on();
        char* pointer = allocate(64);
        char* data = kernel_pointer(pointer);
        EXPECT_OK(orFree(pointer));
        write_in_kernel(data);
      },
      ended,
      "which was freed");
}

TEST_F(MemoryCheck, KernelThatPassesTheLastPageOfABlockFaults) {
  EXPECT_DEATH(
      {
        turn_on();
        char* pointer = allocate(page_size() - 1);
        allocate(1); // not reached either
        char* data = kernel_pointer(pointer);
        write_in_kernel(data + page_size() - 1); // checks are per page
        std::fputs("rounding ", stderr);
        write_in_kernel(data + page_size());
      },
      "^rounding openreg: a kernel reached 0x" HEX_DIGITS
      ", the kernel pointer of "
      "0x" HEX_DIGITS " on device openreg:0 .offset " +
          std::to_string(page_size()) + " in the block of " +
          std::to_string(page_size() - 1) +
          " bytes "
          "at 0x" HEX_DIGITS ", past its end.\\.\n");
}

TEST_F(MemoryCheck, KernelThatAccessesUnallocatedMemoryFaults) {
  EXPECT_DEATH(
      {
        turn_on();
        write_in_kernel(kernel_pointer(allocate(1)) + kMiB);
      },
      "on device openreg:0 where no block is allocated\\.");
}

TEST_F(MemoryCheck, KernelThatTouchesABlockOfBeforeAResetFaults) {
  EXPECT_DEATH(
      {
        turn_on();
        char* data = kernel_pointer(allocate(64));
        EXPECT_OK(orDeviceReset());
        write_in_kernel(kernel_pointer(allocate(64)));
        std::fputs("new ", stderr);
        write_in_kernel(data);
      },
      "^new openreg: a kernel reached .*64 bytes.*which was freed");
}

TEST_F(MemoryCheck, HostThatFollowsAFreedPointerIsToldSo) {
  EXPECT_DEATH(
      {
        turn_on();
        char* pointer = allocate(64);
        EXPECT_OK(orFree(pointer));
        *static_cast<volatile char*>(pointer) = 1;
      },
      "the host dereferenced .*offset 0 in the block of 64 bytes at "
      "0x" HEX_DIGITS ", which was freed.\\.\n");
}

TEST_F(MemoryCheck, QueuedCopyToAFreedBlockIsStillIllegalAddress) {
  EXPECT_EXIT(
      {
        turn_on();
        const CurrentDevice current(1);
        char* pointer = allocate(64);
        {
          const Latch latch(nullptr);
          EXPECT_OK(orMemsetAsync(pointer, 0, 64, nullptr));
          EXPECT_OK(orFreeUnused(pointer));
        }
        report(orDeviceSynchronize(), orErrorIllegalAddress);
      },
      testing::ExitedWithCode(0),
      "no block is allocated any more");
}

TEST_F(MemoryCheck, WrongPointerIsToldOfTheFreedBlock) {
  EXPECT_EXIT(
      {
        turn_on();
        char* pointer = allocate(64);
        EXPECT_OK(orFree(pointer));
        report(orMemset(pointer + 8, 0, 1), orErrorInvalidValue);
      },
      testing::ExitedWithCode(0),
      "is not in a live block of device 0: the block of 64 bytes at "
      "0x" HEX_DIGITS " was freed");
}

TEST_F(MemoryCheck, FreedBlockCountsAsFreeAndGoesBackToTheSystem) {
  NEEDS_PAGES_TO_RETURN();
  EXPECT_EXIT(
      {
        turn_on();
        const std::size_t free = free_bytes();
        const std::size_t before = resident_shared();
        for (int i = 0; i < 64; ++i) {
          char* pointer = allocate(kMiB - 1);
          EXPECT_EQ(free_bytes(), free - kMiB) << "a block takes whole pages";
          EXPECT_OK(orMemset(pointer, 1, kMiB - 1));
          EXPECT_OK(orFree(pointer));
        }
        EXPECT_EQ(free_bytes(), free);
        EXPECT_LT(resident_shared(), before + 8 * kMiB);
        finish();
      },
      testing::ExitedWithCode(0),
      "");
}

TEST_F(MemoryCheck, AddressesAreUsedAgainOnlyWhenThereAreNoOthers) {
  EXPECT_EXIT(
      {
        turn_on("1MiB"); // 4 MiB of addresses
        std::vector<char*> used;
        const std::size_t blocks = 4 * kMiB / (2 * page_size());
        for (std::size_t i = 0; i < blocks; ++i) {
          used.push_back(allocate(1));
          EXPECT_OK(orMemset(used.back(), 7, 1));
          EXPECT_OK(orFree(used.back()));
        }
        for (std::size_t i = 1; i < blocks; ++i) {
          EXPECT_LT(used[i - 1], used[i]);
        }
        for (std::size_t i = 0; i < blocks; ++i) {
          char* again = allocate(1);
          EXPECT_EQ(again, used[i]) << "the oldest first";
          char value = -1;
          EXPECT_OK(orMemcpy(&value, again, 1, orMemcpyDeviceToHost));
          EXPECT_EQ(value, 0) << "of fresh pages";
          EXPECT_OK(orFree(again));
        }
        finish();
      },
      testing::ExitedWithCode(0),
      "");
}

TEST_F(MemoryCheck, WholeCapacityCanBeAllocated) {
  EXPECT_EXIT(
      {
        turn_on("1MiB");
        std::vector<char*> blocks(kMiB / page_size());
        for (int round = 0; round < 3; ++round) {
          for (char*& block : blocks) {
            block = allocate(page_size());
          }
          void* pointer = nullptr;
          EXPECT_EQ(orMalloc(&pointer, 1), orErrorMemoryAllocation);
          for (std::size_t i = 0; i < blocks.size(); i += 2) {
            EXPECT_OK(orFree(blocks[i]));
          }
          char* large = allocate(kMiB / 2); // no hole is larger than one page
          EXPECT_EQ(free_bytes(), 0u);
          EXPECT_OK(orFree(large));
          for (std::size_t i = 1; i < blocks.size(); i += 2) {
            EXPECT_OK(orFree(blocks[i]));
          }
        }
        finish();
      },
      testing::ExitedWithCode(0),
      "");
}

TEST_F(MemoryCheck, TooManyBlocksAreMemoryAllocationAndLeaveMappings) {
#if defined(_WIN32)
  GTEST_SKIP() << "Windows does not limit mappings";
#else
  EXPECT_EXIT(
      {
        turn_on();
        std::size_t mappings = 0;
        std::ifstream("/proc/sys/vm/max_map_count") >> mappings;
        const std::size_t most =
            std::min(mappings / 4 * 3 / 2, (kMiB << 10) / page_size());
        std::vector<void*> blocks(most);
        for (void*& block : blocks) {
          block = allocate(1);
        }
        void* pointer = nullptr;
        EXPECT_EQ(orMalloc(&pointer, 1), orErrorMemoryAllocation);
        std::thread([] {}).join();
        EXPECT_OK(orFree(blocks.back()));
        blocks.back() = allocate(1);
        EXPECT_OK(orDeviceReset());
        EXPECT_OK(orFree(allocate(1)));
        finish();
      },
      testing::ExitedWithCode(0),
      "");
#endif
}

TEST_F(MemoryCheck, BlockFreedAtExitUnderAKernelDoesNotFault) {
  EXPECT_EXIT(
      {
        turn_on();
        static char* pointer = nullptr;
        static char* data = nullptr;
        static auto& started = *new Signal; // used until the end
        static auto& freed = *new Signal;
        static auto& touched = *new Signal;
        std::atexit([] { // runs after the library's
          EXPECT_OK(orFree(pointer));
          freed.set();
          touched.wait();
        });
        pointer = allocate(64);
        data = kernel_pointer(pointer);
        EXPECT_OK(orLaunchKernel(orStream_t(nullptr), [] {
          started.set();
          freed.wait();
          *data = 1;
          touched.set();
        }));
        started.wait();
        std::exit(0);
      },
      testing::ExitedWithCode(0),
      "^$");
}

TEST_F(MemoryCheck, TurnedOffLetsAKernelAccessAFreedBlock) {
  EXPECT_EXIT(
      {
        char* pointer = allocate(64);
        char* data = kernel_pointer(pointer);
        EXPECT_OK(orFree(pointer));
        write_in_kernel(data);
        finish();
      },
      testing::ExitedWithCode(0),
      "^$");
}

} // namespace
