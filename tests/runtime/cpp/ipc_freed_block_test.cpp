// SPDX-License-Identifier: BSD-3-Clause
// Shared blocks that the owner frees while another process has them open.
#include "shared_block.h"

namespace {

constexpr std::size_t kSize = 10000;

/// A block of ones that the other process has opened.
char* offer(OtherProcess& other) {
  void* pointer = nullptr;
  EXPECT_OK(orMalloc(&pointer, kSize));
  EXPECT_OK(orMemset(pointer, 1, kSize));
  other.send(handle_of(pointer));
  other.wait();
  return static_cast<char*>(pointer);
}

/// Opens one block, writes to it, and closes it on a signal.
void open_and_write(OtherProcess other) {
  {
    const OpenedBlock block(other.receive<orIpcMemHandle_t>());
    other.signal();
    other.wait();
    EXPECT_EQ(first_byte(block.get()), 1);
    EXPECT_OK(orMemset(block.get(), 2, kSize));
    EXPECT_EQ(first_byte(block.get(kSize - 1)), 2);
    other.signal();
    other.wait();
  }
  other.signal();
}

/// Frees a block with `end` while the other process writes to it.
template <typename End>
void free_while_open(OtherProcess other, const End& end) {
  const std::size_t before = free_bytes();
  char* freed = offer(other);
  end(freed);
  {
    const Block block(kSize);
    EXPECT_NE(reinterpret_cast<char*>(block.get()), freed);
    ASSERT_OK(orMemset(block.get(), 3, kSize));
    other.signal();
    other.wait();
    for (const std::size_t offset : {std::size_t{0}, kSize - 1}) {
      EXPECT_EQ(first_byte(block.get(offset)), 3);
    }
  }
  EXPECT_LE(free_bytes() + kSize, before);
  other.signal();
  other.wait(); // closed
  EXPECT_EQ(free_bytes(), before);
}

void free_it(char* pointer) {
  EXPECT_OK(orFree(pointer));
}

TEST(orFree, OfABlockThatIsOpenElsewhereKeepsItsBytesUntilItIsClosed) {
  EXPECT_TWO_PROCESSES(open_and_write, [](OtherProcess other) {
    free_while_open(other, free_it);
  });
}

TEST(orFree, OfABlockThatIsOpenElsewhereKeepsItsBytesUnderMemoryCheck) {
  EXPECT_TWO_PROCESSES(
      [](OtherProcess other) {
        setenv("OPENREG_MEMORY_CHECK", "1", 1);
        open_and_write(other);
      },
      [](OtherProcess other) {
        setenv("OPENREG_MEMORY_CHECK", "1", 1);
        free_while_open(other, free_it);
      });
}

TEST(orDeviceReset, KeepsTheBytesOfABlockThatIsOpenElsewhere) {
  EXPECT_TWO_PROCESSES(open_and_write, [](OtherProcess other) {
    free_while_open(other, [](char*) { EXPECT_OK(orDeviceReset()); });
  });
}

TEST(orFreeAsync, OfABlockThatIsOpenElsewhereKeepsItsBytesUntilItIsClosed) {
  EXPECT_TWO_PROCESSES(open_and_write, [](OtherProcess other) {
    free_while_open(
        other, [](char* block) { EXPECT_OK(orFreeAsync(block, nullptr)); });
  });
}

TEST(orFree, OfABlockThatIsOpenElsewhereEndsItForThisProcess) {
  EXPECT_TWO_PROCESSES(open_and_write, [](OtherProcess other) {
    char* block = offer(other);
    ASSERT_OK(orFree(block));
    EXPECT_EQ(orFree(block), orErrorInvalidValue);
    EXPECT_MESSAGE("it was freed already");
    EXPECT_EQ(orMemset(block, 0, 1), orErrorInvalidValue);
    orIpcMemHandle_t handle;
    EXPECT_EQ(orIpcGetMemHandle(&handle, block), orErrorInvalidValue);
    orResourceUsage usage{};
    usage.structSize = sizeof(usage);
    ASSERT_OK(orGetResourceUsage(&usage));
    EXPECT_EQ(usage.deviceBlocks, 0u);
    EXPECT_EQ(usage.deviceBytes, 0u);
    other.signal();
    other.wait();
    other.signal();
    other.wait();
  });
}

TEST(orFreeUnused, OfASharedBlockThatWasFreedInStreamOrderIsInvalidValue) {
  EXPECT_TWO_PROCESSES(open_and_write, [](OtherProcess other) {
    char* block = offer(other);
    const Stream stream;
    {
      const Latch latch(stream);
      ASSERT_OK(orFreeAsync(block, stream));
      EXPECT_EQ(orFreeUnused(block), orErrorInvalidValue);
      EXPECT_EQ(orFreeAsync(block, stream), orErrorInvalidValue);
    }
    ASSERT_OK(orStreamSynchronize(stream));
    void* later = nullptr;
    ASSERT_OK(orMalloc(&later, kSize));
    EXPECT_NE(later, block);
    EXPECT_OK(orFree(later));
    other.signal();
    other.wait();
    other.signal();
    other.wait();
  });
}

TEST(orMalloc, TakesTheBytesOfAFreedBlockOnceTheOtherProcessHasClosedIt) {
  EXPECT_TWO_PROCESSES(open_and_write, [](OtherProcess other) {
    char* freed = offer(other);
    ASSERT_OK(orDeviceSetLimit(orLimitMemory, kSize + 512));
    ASSERT_OK(orFree(freed));
    void* pointer = nullptr;
    EXPECT_EQ(orMalloc(&pointer, kSize), orErrorMemoryAllocation);
    EXPECT_MESSAGE("other processes still have blocks open");
    other.signal();
    other.wait();
    other.signal();
    other.wait(); // closed
    EXPECT_OK(orMalloc(&pointer, kSize));
    EXPECT_EQ(pointer, freed);
    EXPECT_OK(orFree(pointer));
  });
}

TEST(orFree, OfABlockWhoseOtherProcessIsKilledReleasesIt) {
  EXPECT_TWO_PROCESSES(
      [](OtherProcess other) {
        const OpenedBlock block(other.receive<orIpcMemHandle_t>());
        other.signal();
        other.wait(); // until it is killed
      },
      [](OtherProcess other) {
        const std::size_t before = free_bytes();
        ASSERT_OK(orFree(offer(other)));
        EXPECT_LT(free_bytes(), before);
        other.kill();
        other.wait_for_end();
        EXPECT_EQ(free_bytes(), before);
      });
}

TEST(orIpcCloseMemHandle, OfOneOfTwoBlocksReleasesThatOne) {
  EXPECT_TWO_PROCESSES(
      [](OtherProcess other) {
        {
          auto first =
              std::make_unique<OpenedBlock>(other.receive<orIpcMemHandle_t>());
          other.signal();
          const OpenedBlock second(other.receive<orIpcMemHandle_t>());
          other.signal();
          other.wait();
          first.reset();
          other.signal();
          other.wait();
        }
        other.signal();
      },
      [](OtherProcess other) {
        const std::size_t before = free_bytes();
        char* first = offer(other);
        const std::size_t with_one = free_bytes();
        char* second = offer(other);
        const std::size_t with_both = free_bytes();
        ASSERT_OK(orFree(first));
        ASSERT_OK(orFree(second));
        EXPECT_EQ(free_bytes(), with_both);
        other.signal();
        other.wait();
        EXPECT_EQ(free_bytes(), with_one);
        other.signal();
        other.wait();
        EXPECT_EQ(free_bytes(), before);
      });
}

TEST(orIpcOpenMemHandle, OfAFreedBlockThatIsOpenAlreadyIsInvalidValue) {
  EXPECT_TWO_PROCESSES(
      [](OtherProcess other) {
        const auto handle = other.receive<orIpcMemHandle_t>();
        {
          const OpenedBlock block(handle);
          other.signal();
          other.wait();
          void* again = nullptr;
          EXPECT_EQ(orIpcOpenMemHandle(&again, handle, 0), orErrorInvalidValue);
          EXPECT_MESSAGE("has freed it");
          EXPECT_EQ(first_byte(block.get()), 1);
        }
        other.signal();
      },
      [](OtherProcess other) {
        ASSERT_OK(orFree(offer(other)));
        other.signal();
        other.wait();
      });
}

} // namespace
