// SPDX-License-Identifier: BSD-3-Clause
// Device memory shared by two processes.
#include "shared_block.h"

#include <array>

namespace {

bool operator==(const orIpcMemHandle_t& a, const orIpcMemHandle_t& b) {
  return std::memcmp(&a, &b, sizeof(a)) == 0;
}

TEST(orIpcGetMemHandle, NamesTheBlockAroundThePointer) {
  const Block block(100);
  const Block other(100);
  orIpcMemHandle_t handle{};
  ASSERT_OK(orIpcGetMemHandle(&handle, block.get(99)));
  EXPECT_TRUE(handle == handle_of(block.get()));
  EXPECT_FALSE(handle == handle_of(other.get()));
}

TEST(orIpcGetMemHandle, NeverNamesALaterBlockAtTheAddress) {
  void* pointer = nullptr;
  ASSERT_OK(orMalloc(&pointer, 64));
  const auto handle = handle_of(pointer);
  ASSERT_OK(orFree(pointer));
  const Block block(64);
  ASSERT_EQ(static_cast<void*>(block.get()), pointer);
  EXPECT_FALSE(handle == handle_of(pointer));
}

TEST(orIpcOpenMemHandle, SharesBytesBothWays) {
  EXPECT_TWO_PROCESSES(
      [](OtherProcess other) {
        const CurrentDevice current(1);
        const Block first(512); // so that the second does not start a page
        const Block block(10000);
        ASSERT_OK(orMemset(block.get(), 1, 10000));
        other.send(handle_of(block.get()));
        other.wait();
        EXPECT_EQ(first_byte(block.get()), 1);
        EXPECT_EQ(first_byte(block.get(9998)), 2);
        EXPECT_EQ(first_byte(block.get(9999)), 3);
      },
      [](OtherProcess other) {
        const CurrentDevice current(1);
        {
          void* pointer = nullptr;
          ASSERT_OK(orIpcOpenMemHandle(
              &pointer, other.receive<orIpcMemHandle_t>(), 0));
          auto* data = static_cast<char*>(pointer);
          EXPECT_EQ(first_byte(data + 9999), 1);
          ASSERT_OK(orMemset(data + 9998, 2, 1));
          char* target = kernel_pointer(data + 9999);
          ASSERT_OK(orLaunchKernel(nullptr, [target] { *target += 2; }));
          ASSERT_OK(orStreamSynchronize(nullptr));
          EXPECT_OK(orIpcCloseMemHandle(pointer));
        }
        other.signal();
      });
}

TEST(orIpcOpenMemHandle, ReturnsAnOrdinaryBlockOfTheDevice) {
  EXPECT_TWO_PROCESSES(
      [](OtherProcess other) {
        const CurrentDevice current(1);
        offer_a_block(other);
      },
      [](OtherProcess other) {
        {
          const OpenedBlock block(other.receive<orIpcMemHandle_t>());
          orPointerAttributes attributes = OPENREG_POINTER_ATTRIBUTES_INIT;
          ASSERT_OK(orPointerGetAttributes(&attributes, block.get(999)));
          EXPECT_EQ(attributes.type, orMemoryTypeDevice);
          EXPECT_EQ(attributes.device, 1);
          EXPECT_EQ(attributes.pointer, block.get());
          EXPECT_EQ(attributes.size, 1000u);
          EXPECT_EQ(orMemset(block.get(999), 0, 2), orErrorInvalidValue);
          EXPECT_MESSAGE("pass the end of the block of 1000 bytes");
          ASSERT_OK(orMemoryUnprotect(block.get()));
          EXPECT_EQ(*block.get(999), 1);
          ASSERT_OK(orMemoryUnprotect(block.get())); // reprotected at close
        }
        other.signal();
      });
}

TEST(orIpcOpenMemHandle, AgainCountsAndKeepsTheAddress) {
  EXPECT_TWO_PROCESSES(offer_a_block, [](OtherProcess other) {
    const auto handle = other.receive<orIpcMemHandle_t>();
    void* first = nullptr;
    void* second = nullptr;
    ASSERT_OK(orIpcOpenMemHandle(&first, handle, 0));
    ASSERT_OK(
        orIpcOpenMemHandle(&second, handle, orIpcMemLazyEnablePeerAccess));
    EXPECT_EQ(first, second);
    EXPECT_EQ(openings(), 2u);
    ASSERT_OK(orIpcCloseMemHandle(first));
    EXPECT_EQ(first_byte(second), 1);
    ASSERT_OK(orIpcCloseMemHandle(second));
    EXPECT_EQ(orMemset(second, 0, 1), orErrorInvalidValue);
    other.signal();
  });
}

TEST(orIpcOpenMemHandle, ManyBlocksLieApart) {
  constexpr std::size_t kBlocks = 40;
  using Handles = std::array<orIpcMemHandle_t, kBlocks>;
  EXPECT_TWO_PROCESSES(
      [](OtherProcess other) {
        std::vector<std::unique_ptr<Block>> blocks;
        Handles handles;
        for (std::size_t i = 0; i < kBlocks; ++i) {
          blocks.push_back(std::make_unique<Block>(1 + 700 * i));
          ASSERT_OK(
              orMemset(blocks[i]->get(), static_cast<int>(i), 1 + 700 * i));
          handles[i] = handle_of(blocks[i]->get());
        }
        other.send(handles);
        other.wait();
      },
      [](OtherProcess other) {
        const auto handles = other.receive<Handles>();
        std::array<std::unique_ptr<OpenedBlock>, kBlocks> blocks;
        for (std::size_t i = 0; i < kBlocks; ++i) {
          blocks[i] = std::make_unique<OpenedBlock>(handles[i]);
        }
        for (std::size_t i = 0; i < kBlocks; i += 3) {
          blocks[i].reset();
        }
        for (std::size_t i = kBlocks; i-- > 0;) {
          if (!blocks[i]) {
            blocks[i] = std::make_unique<OpenedBlock>(handles[i]);
          }
        }
        for (std::size_t i = 0; i < kBlocks; ++i) {
          EXPECT_EQ(first_byte(blocks[i]->get()), static_cast<char>(i));
          EXPECT_EQ(first_byte(blocks[i]->get(700 * i)), static_cast<char>(i));
        }
        blocks = {};
        other.signal();
      });
}

TEST(orIpcOpenMemHandle, OutlivesTheProcessOfTheBlock) {
  EXPECT_TWO_PROCESSES(
      [](OtherProcess other) {
        const Block block(1000);
        ASSERT_OK(orMemset(block.get(), 1, 1000));
        other.send(handle_of(block.get()));
        other.wait();
        std::_Exit(0); // frees nothing
      },
      [](OtherProcess other) {
        const OpenedBlock block(other.receive<orIpcMemHandle_t>());
        other.signal();
        other.wait_for_end();
        EXPECT_EQ(first_byte(block.get()), 1);
        ASSERT_OK(orMemset(block.get(), 2, 1000));
        EXPECT_EQ(first_byte(block.get(999)), 2);
      });
}

TEST(orIpcOpenMemHandle, OfABlockThatIsThenFreedStaysMapped) {
  constexpr std::size_t kSize = std::size_t{80} << 20; // its pages are released
  EXPECT_TWO_PROCESSES(
      [](OtherProcess other) {
        {
          const Block block(kSize);
          ASSERT_OK(orMemset(block.get(), 1, kSize));
          other.send(handle_of(block.get()));
          other.wait();
        }
        other.signal();
        other.wait();
      },
      [](OtherProcess other) {
        {
          const OpenedBlock block(other.receive<orIpcMemHandle_t>());
          other.signal();
          other.wait();
          ASSERT_OK(orMemset(block.get(), 2, kSize));
          EXPECT_EQ(first_byte(block.get(kSize - 1)), 2);
        }
        other.signal();
      });
}

TEST(orIpcOpenMemHandle, HostFaultNamesTheBlock) {
  EXPECT_DEATH_OF_TWO_PROCESSES(
      "device openreg:0 .offset 24 in the block of 1000 bytes",
      offer_a_block,
      [](OtherProcess other) {
        const OpenedBlock block(other.receive<orIpcMemHandle_t>());
        static_cast<void>(*const_cast<const volatile char*>(block.get(24)));
      });
}

} // namespace
