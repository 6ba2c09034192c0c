// SPDX-License-Identifier: BSD-3-Clause
// The pages that the heap of a device releases, with a model of the system.
#include "memory/heap.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <map>
#include <numeric>
#include <random>
#include <string>
#include <vector>

namespace openreg::platform {

constexpr std::size_t kPage = 4096;

/// Stands for the page size of the system.
std::size_t page_size() noexcept {
  return kPage;
}

} // namespace openreg::platform

namespace {

using openreg::Heap;
using openreg::platform::kPage;

constexpr std::size_t kMiB = std::size_t{1} << 20;
constexpr std::size_t kSpan = 1024 * kMiB;
constexpr std::size_t kMostKept = 64 * kMiB;

/// A heap, its blocks and the pages of its memory.
struct Memory {
  Heap heap{
      kSpan,
      kSpan,
      /*guarded=*/false,
      [this](std::size_t offset, std::size_t size) { release(offset, size); }};
  std::map<std::size_t, std::size_t> blocks; // sizes by offset
  std::vector<bool> resident = std::vector<bool>(kSpan / kPage);
  std::size_t freed = 0;    // bytes
  std::size_t released = 0; // bytes

  std::size_t allocate(std::size_t size) {
    const std::size_t offset = heap.allocate(size).value();
    blocks[offset] = size;
    mark(offset, offset + size, true);
    return offset;
  }

  void free(std::size_t offset) {
    freed += heap.footprint(blocks.at(offset));
    blocks.erase(offset);
    ASSERT_TRUE(heap.free(offset));
  }

  void release(std::size_t offset, std::size_t size) {
    ASSERT_EQ(offset % kPage, 0U);
    ASSERT_EQ(size % kPage, 0U);
    const auto next = blocks.lower_bound(offset);
    if (next != blocks.end()) {
      ASSERT_GE(next->first, offset + size);
    }
    if (next != blocks.begin()) {
      const auto& [begin, length] = *std::prev(next);
      ASSERT_LE(begin + length, offset);
    }
    mark(offset, offset + size, false);
    released += size;
  }

  void mark(std::size_t begin, std::size_t end, bool value) {
    std::fill(
        resident.begin() + static_cast<std::ptrdiff_t>(begin / kPage),
        resident.begin() + static_cast<std::ptrdiff_t>((end - 1) / kPage + 1),
        value);
  }

  /// Bytes in resident pages that have no byte of a block.
  std::size_t kept() const {
    std::vector<bool> free = resident;
    for (const auto& [offset, size] : blocks) {
      std::fill(
          free.begin() + static_cast<std::ptrdiff_t>(offset / kPage),
          free.begin() +
              static_cast<std::ptrdiff_t>((offset + size - 1) / kPage + 1),
          false);
    }
    return kPage *
        static_cast<std::size_t>(std::count(free.begin(), free.end(), true));
  }
};

/// An order of 0 to `count` - 1.
std::vector<std::size_t> order(const std::string& name, std::size_t count) {
  std::vector<std::size_t> numbers(count);
  std::iota(numbers.begin(), numbers.end(), std::size_t{0});
  if (name == "backward") {
    std::reverse(numbers.begin(), numbers.end());
  } else if (name == "random") {
    std::shuffle(numbers.begin(), numbers.end(), std::mt19937(46));
  } else if (name == "from the middle") {
    std::stable_sort(
        numbers.begin(), numbers.end(), [count](std::size_t a, std::size_t b) {
          const auto from_middle = [count](std::size_t number) {
            return std::max(number, count - number);
          };
          return from_middle(a) < from_middle(b);
        });
  }
  return numbers;
}

TEST(Heap, ReleasesAtMostTwiceTheFreedBytes) {
  for (const std::string name :
       {"forward", "backward", "random", "from the middle"}) {
    SCOPED_TRACE(name);
    Memory memory;
    for (int round = 0; round < 2; ++round) {
      std::vector<std::size_t> blocks(4096);
      for (std::size_t& block : blocks) {
        block = memory.allocate(64 << 10);
      }
      for (const std::size_t number : order(name, blocks.size())) {
        memory.free(blocks[number]);
      }
    }
    EXPECT_GT(memory.released, kMostKept);
    EXPECT_LE(memory.released, 2 * memory.freed);
    EXPECT_LE(memory.kept(), kMostKept);
  }
}

TEST(Heap, KeepsFewPagesOfBlocksOfAnySize) {
  Memory memory;
  std::mt19937 random(46);
  std::vector<std::size_t> blocks;
  for (int step = 0; step < 20000; ++step) {
    // Grows to about 500 MiB and shrinks again, four times.
    const bool grows = step / 2500 % 2 == 0;
    if (blocks.empty() || random() % 10 < (grows ? 8U : 2U)) {
      const std::size_t most = std::size_t{1} << (9 + random() % 13);
      if (memory.heap.used() + most < kSpan / 2) {
        blocks.push_back(memory.allocate(1 + random() % most));
      }
    } else {
      std::swap(blocks[random() % blocks.size()], blocks.back());
      memory.free(blocks.back());
      blocks.pop_back();
    }
    if (step % 100 == 0) {
      // A page at each end of a free extent may be shared with a block.
      ASSERT_LE(memory.kept(), kMostKept + 2 * kPage * (blocks.size() + 1));
    }
  }
  EXPECT_GT(memory.released, 0U);
  // Whole pages are released for small blocks.
  EXPECT_LE(memory.released, 2 * memory.freed + 20000 * kPage);
}

TEST(Heap, KeepsPagesForTheNextBlockInAFreeRangeWithOlderPages) {
  Memory memory;
  const std::size_t first = memory.allocate(200 * kMiB);
  const std::size_t second = memory.allocate(32 * kMiB);
  memory.free(first); // releases its pages
  memory.free(second);
  const std::size_t block = memory.allocate(32 * kMiB);
  memory.free(block); // at the other end of the free range
  const std::size_t before = memory.released;
  for (int i = 0; i < 10; ++i) {
    memory.free(memory.allocate(32 * kMiB));
  }
  EXPECT_EQ(memory.released, before);
  EXPECT_LE(memory.kept(), kMostKept);
}

} // namespace
