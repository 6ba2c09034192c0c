// SPDX-License-Identifier: BSD-3-Clause
// Allocations: pairs of malloc and free, and their effect on resident memory.
#include "sections.h"

namespace bench {
namespace {

Batch pairs(const Library& library, std::size_t size, std::size_t count) {
  const auto malloc = OPENREG_CALL(library, orMalloc);
  const auto free = OPENREG_CALL(library, orFree);
  return [=]() -> Samples {
    const double time = time_of([&] {
      for (std::size_t i = 0; i < count; ++i) {
        void* pointer = nullptr;
        malloc(&pointer, size);
        free(pointer);
      }
    });
    return {time / static_cast<double>(count)};
  };
}

/// Like pairs(), but writes every block; the write is not timed.
Batch written_pairs(
    const Library& library,
    std::size_t size,
    std::size_t count) {
  const auto malloc = OPENREG_CALL(library, orMalloc);
  const auto free = OPENREG_CALL(library, orFree);
  const auto copy = OPENREG_CALL(library, orMemcpy);
  const auto source = std::make_shared<std::vector<std::byte>>(size);
  return [=] {
    Samples samples;
    for (std::size_t i = 0; i < count; ++i) {
      void* pointer = nullptr;
      const double first = time_of([&] { malloc(&pointer, size); });
      copy(pointer, source->data(), size, orMemcpyHostToDevice);
      samples.push_back(first + time_of([&] { free(pointer); }));
    }
    return samples;
  };
}

/// Pairs of many sizes with some live blocks: the time of a pair, and the
/// growth of resident memory.
Batches many_pairs(const Library& library, std::size_t count) {
  const auto malloc = OPENREG_CALL(library, orMalloc);
  const auto free = OPENREG_CALL(library, orFree);
  return [=]() -> std::vector<Samples> {
    constexpr std::size_t kLive = 64;
    std::vector<void*> live(kLive, nullptr);
    const double before = resident_mebibytes();
    const double time = time_of([&] {
      for (std::size_t i = 0; i < count; ++i) {
        void*& slot = live[i % kLive];
        if (slot != nullptr) {
          free(slot);
        }
        malloc(&slot, (i * 7919 % 4096 + 1) * 512); // up to 2 MiB
      }
      for (void* pointer : live) {
        free(pointer);
      }
    });
    return {
        {time / static_cast<double>(count)}, {resident_mebibytes() - before}};
  };
}

} // namespace

void measure_allocations(Bench& bench) {
  bench.section("malloc + free");
  const std::size_t count = bench.some(1000, 10);
  for (const std::size_t size :
       {std::size_t{512}, 4 * kKiB, kMiB, 2 * kMiB, 20 * kMiB, 64 * kMiB}) {
    bench.measure({size_name(size), "us", "<= 3"}, [=](const Library& library) {
      return pairs(library, size, count);
    });
    bench.measure(
        {size_name(size) + ", written between", "us", ""},
        [=](const Library& library) {
          return written_pairs(library, size, size > kMiB ? 10 : count);
        });
  }
  bench.section("malloc + free, many");
  bench.measure_together(
      {{"a pair, up to 2 MiB, 64 live", "us", ""},
       {"resident memory gained", "MiB", "0"}},
      [count = bench.some(1000000, 1000)](const Library& library) {
        return many_pairs(library, count);
      });
}

} // namespace bench
