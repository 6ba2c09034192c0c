// SPDX-License-Identifier: BSD-3-Clause
// Copies between host and device memory, compared with memcpy.
#include "sections.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace bench {
namespace {

enum class Path { kIn, kOut, kPinnedIn, kPinnedOut, kDevice };

/// Returns host memory with all pages written. A large memcpy is several times
/// slower if its destination has a slightly higher offset within a page than
/// its source, so all blocks are page-aligned.
std::shared_ptr<void> make_host(std::size_t size) {
  constexpr std::size_t kPage = 4096;
  std::shared_ptr<void> block(std::aligned_alloc(kPage, size), std::free);
  std::memset(block.get(), 1, size);
  return block;
}

/// A batch of copies of `size` bytes each, in GiB/s.
template <typename Copy>
Batch copies(std::size_t size, std::size_t count, Copy copy) {
  return [=]() -> Samples {
    const double time = time_of([&] {
      for (std::size_t i = 0; i < count; ++i) {
        copy();
      }
    });
    const auto bytes = static_cast<double>(size * count);
    return {bytes / static_cast<double>(kGiB) / time * 1e6};
  };
}

Batch device_copies(
    const Library& library,
    Path path,
    std::size_t size,
    std::size_t count) {
  const auto copy = OPENREG_CALL(library, orMemcpy);
  const auto enqueue = OPENREG_CALL(library, orMemcpyAsync);
  const auto synchronize = OPENREG_CALL(library, orStreamSynchronize);
  const auto stream = make_stream(library);
  const auto device = make_block(library, size);
  const auto host = make_host(size);
  // Writes every page.
  copy(device.get(), host.get(), size, orMemcpyHostToDevice);
  if (path == Path::kDevice) {
    const auto other = make_block(library, size);
    copy(other.get(), device.get(), size, orMemcpyDeviceToDevice);
    return copies(size, count, [=] {
      copy(other.get(), device.get(), size, orMemcpyDeviceToDevice);
    });
  }
  if (path == Path::kIn) {
    return copies(size, count, [=] {
      copy(device.get(), host.get(), size, orMemcpyHostToDevice);
    });
  }
  if (path == Path::kOut) {
    return copies(size, count, [=] {
      copy(host.get(), device.get(), size, orMemcpyDeviceToHost);
    });
  }
  const auto pinned = make_pinned(library, size);
  std::memset(pinned.get(), 0, size);
  if (path == Path::kPinnedIn) {
    return copies(size, count, [=] {
      enqueue(
          device.get(), pinned.get(), size, orMemcpyHostToDevice, stream.get());
      synchronize(stream.get());
    });
  }
  return copies(size, count, [=] {
    enqueue(
        pinned.get(), device.get(), size, orMemcpyDeviceToHost, stream.get());
    synchronize(stream.get());
  });
}

Batch host_copies(std::size_t size, std::size_t count) {
  const auto from = make_host(size);
  const auto to = make_host(size);
  // The volatile pointer keeps the compiler from removing copies.
  static void* (*volatile copy)(void*, const void*, std::size_t) = std::memcpy;
  return copies(size, count, [=] { copy(to.get(), from.get(), size); });
}

} // namespace

void measure_copies(Bench& bench) {
  constexpr std::size_t kBatchBytes = 64 * kMiB;
  const std::pair<Path, const char*> paths[] = {
      {Path::kIn, "H2D"},
      {Path::kOut, "D2H"},
      {Path::kPinnedIn, "H2D, pinned, async"},
      {Path::kPinnedOut, "D2H, pinned, async"},
      {Path::kDevice, "D2D"}};
  for (const auto& [path, name] : paths) {
    bench.section(std::string("copy ") + name);
    for (const std::size_t size :
         {4 * kKiB, 64 * kKiB, kMiB, 16 * kMiB, 64 * kMiB, 256 * kMiB, kGiB}) {
      if (bench.quick() && size > kMiB) {
        break;
      }
      const std::size_t count =
          bench.some(std::max(kBatchBytes / size, std::size_t{1}), 1);
      bench.measure(
          {size_name(size),
           "GiB/s",
           size == 64 * kMiB ? ">= 0.9 x memcpy" : ""},
          [=, path = path](const Library& library) {
            return device_copies(library, path, size, count);
          },
          std::pair{std::string("memcpy"), host_copies(size, count)});
    }
  }
}

} // namespace bench
