// SPDX-License-Identifier: BSD-3-Clause
// Memory files by shm_open(), whose names are removed immediately.
//
// macOS neither reads nor writes these files, and sizes them only once, so all
// access is by mappings, and the room is part of the file from the beginning.
#include "platform/file.h"
#include "platform/mapping.h"
#include "platform/posix/descriptor.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <random>
#include <sys/mman.h>
#include <unistd.h>
#include <utility>

namespace openreg::platform {
namespace {

std::uint64_t random_number() {
  std::random_device random;
  return std::uint64_t{random()} << 32 | random();
}

/// Copies between memory and a part of a file: `copy` gets its mapping.
template <typename Copy>
Result with_mapping(
    const File& file,
    std::uint64_t offset,
    std::size_t size,
    const Copy& copy) {
  std::uint64_t end = 0;
  if (Result found = size_of(file, end); !found) {
    return found;
  }
  if (offset > end || size > end - offset) {
    return Result::full();
  }
  const auto lead = static_cast<std::size_t>(offset % page_size());
  std::byte* begin = nullptr;
  if (Result mapped =
          map(file, offset - lead, lead + size, /*inherited=*/false, begin);
      !mapped) {
    return mapped;
  }
  copy(begin + lead);
  unmap(begin, lead + size);
  return {};
}

/// Pages of a file, [begin, end).
struct Range {
  std::uint64_t begin;
  std::uint64_t end;
};

/// The first part of a range that may have data: zeros in unused pages would
/// take memory.
Range find_data(
    [[maybe_unused]] const File& file,
    Range range,
    [[maybe_unused]] const std::byte* mapped) {
#if defined(__APPLE__)
  const std::size_t page = page_size();
  const auto is_used = [&](std::uint64_t at) {
    char state = 0;
    return mincore(mapped + (at - range.begin), page, &state) != 0 ||
        (state & (MINCORE_INCORE | MINCORE_PAGED_OUT)) != 0;
  };
  Range data = range;
  while (data.begin < range.end && !is_used(data.begin)) {
    data.begin += page;
  }
  for (data.end = data.begin; data.end < range.end && is_used(data.end);) {
    data.end += page;
  }
  return data;
#elif defined(SEEK_DATA)
  const int descriptor = descriptor_of(file);
  const off_t begin =
      lseek(descriptor, static_cast<off_t>(range.begin), SEEK_DATA);
  if (begin < 0) {
    return errno == ENXIO ? Range{range.end, range.end} : range;
  }
  const off_t end = lseek(descriptor, begin, SEEK_HOLE);
  return {
      std::min(static_cast<std::uint64_t>(begin), range.end),
      end < 0 ? range.end
              : std::min(static_cast<std::uint64_t>(end), range.end)};
#else
  return range;
#endif
}

} // namespace

Result create_memory_file(
    const char* name,
    std::size_t size,
    std::size_t room,
    File& file) {
  File made;
  while (!made) {
    char unique[32]; // the longest name on macOS
    std::snprintf(
        unique,
        sizeof(unique),
        "/%.9s-%016llx",
        name,
        static_cast<unsigned long long>(random_number()));
    made = File(shm_open(unique, O_RDWR | O_CREAT | O_EXCL, 0600));
    if (made) {
      shm_unlink(unique);
    } else if (errno != EEXIST) {
      return Result::last();
    }
  }
  if (ftruncate(
          descriptor_of(made), static_cast<off_t>(created_size(size, room))) !=
      0) {
    return Result::last();
  }
  made.set_id({random_number(), random_number()});
  file = std::move(made);
  return {};
}

std::size_t created_size(std::size_t size, std::size_t room) noexcept {
  return size + room;
}

Result
read_at(const File& file, std::uint64_t offset, void* to, std::size_t size) {
  return with_mapping(file, offset, size, [&](const std::byte* from) {
    std::memcpy(to, from, size);
  });
}

Result write_at(
    const File& file,
    std::uint64_t offset,
    const void* from,
    std::size_t size) {
  return with_mapping(
      file, offset, size, [&](std::byte* to) { std::memcpy(to, from, size); });
}

Result release_pages(const File& file, std::uint64_t offset, std::size_t size) {
  return with_mapping(file, offset, size, [&](std::byte* mapped) {
    for (Range left{offset, offset + size}; left.begin < left.end;) {
      const Range data = find_data(file, left, mapped + (left.begin - offset));
      std::memset(
          mapped + (data.begin - offset),
          0,
          static_cast<std::size_t>(data.end - data.begin));
      left.begin = data.end;
    }
  });
}

} // namespace openreg::platform
