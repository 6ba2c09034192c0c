// SPDX-License-Identifier: BSD-3-Clause
// Placeholders, and views of sections in their place.
//
// A section commits no page when it is created, because Windows counts each
// committed page against the memory of the machine, used or not. commit() does
// that for the pages of a block. Pages of a section are committed for all of
// its views together, so they are closed at the same time in views without
// access.
#include "platform/mapping.h"

#include "platform/process.h"
#include "platform/windows/names.h"
#include "platform/windows/system.h"
#include "platform/windows/used_pages.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <mutex>
#include <vector>

namespace openreg::platform {
namespace {

// Pages are committed in chunks of this size.
constexpr std::size_t kChunk = std::size_t{1} << 20;

/// A view in a reservation.
struct View {
  std::size_t size;
  FileId file;
  std::uint64_t offset;
  Access unused; // the access to pages that are not committed yet
};

struct Reservation {
  std::size_t size;
  HANDLE mark;                                    // null without a name
  std::map<std::byte*, std::size_t> placeholders; // sizes, by start
  std::map<std::byte*, View> views;               // by start
};

/// A part of a file of which commit() knows.
struct Chunk {
  bool committed = false;
  bool used = false; // may have data
};

struct Reservations {
  std::mutex mutex;
  std::map<std::byte*, Reservation> all;       // by start
  std::map<FileId, std::vector<Chunk>> chunks; // of files
};

Reservations& reservations() {
  static auto* value = new Reservations; // used until the process ends
  return *value;
}

/// The last element that starts at or before an address, or null if it ends
/// before.
template <typename Map>
auto* find_around(Map& map, std::byte* address) {
  auto next = map.upper_bound(address);
  if (next == map.begin()) {
    return static_cast<typename Map::value_type*>(nullptr);
  }
  auto& found = *std::prev(next);
  std::size_t size = 0;
  if constexpr (std::is_same_v<typename Map::mapped_type, std::size_t>) {
    size = found.second;
  } else {
    size = found.second.size;
  }
  return static_cast<std::size_t>(address - found.first) < size ? &found
                                                                : nullptr;
}

/// The view around an address, or null.
auto* find_view(std::byte* address) {
  auto* reservation = find_around(reservations().all, address);
  return reservation == nullptr
      ? nullptr
      : find_around(reservation->second.views, address);
}

/// A part of a view, all committed or not.
struct Part {
  std::byte* begin;
  std::size_t size;
  bool committed;
};

std::vector<Part> parts_of(std::byte* begin, std::size_t size) {
  std::vector<Part> parts;
  for (std::byte* const end = begin + size; begin < end;) {
    MEMORY_BASIC_INFORMATION region{};
    if (VirtualQuery(begin, &region, sizeof(region)) == 0) {
      break;
    }
    auto* region_end =
        static_cast<std::byte*>(region.BaseAddress) + region.RegionSize;
    const auto part =
        static_cast<std::size_t>(std::min(region_end, end) - begin);
    parts.push_back({begin, part, region.State == MEM_COMMIT});
    begin += part;
  }
  return parts;
}

Result set_access(std::byte* begin, std::size_t size, Access access) {
  DWORD previous = 0;
  const DWORD flags = access == Access::kNone ? PAGE_NOACCESS : PAGE_READWRITE;
  return VirtualProtect(begin, size, flags, &previous) != 0 ? Result()
                                                            : Result::last();
}

Result commit_part(std::byte* begin, std::size_t size) {
  return VirtualAlloc(begin, size, MEM_COMMIT, PAGE_READWRITE) != nullptr
      ? Result()
      : Result::last();
}

/// Commits pages of a file in all views of this process.
Result
commit_in_views(const FileId& file, std::uint64_t offset, std::size_t size) {
  struct Pages {
    Part part;
    Access access;
  };
  std::vector<Pages> found; // all of them before the first one is committed
  for (auto& [begin, reservation] : reservations().all) {
    for (auto& [view_begin, view] : reservation.views) {
      const std::uint64_t from = std::max(offset, view.offset);
      const std::uint64_t to = std::min(offset + size, view.offset + view.size);
      if (view.file != file || from >= to) {
        continue;
      }
      for (const Part& part :
           parts_of(view_begin + (from - view.offset), to - from)) {
        if (!part.committed) {
          found.push_back({part, view.unused});
        }
      }
    }
  }
  for (const auto& [part, access] : found) {
    if (Result done = commit_part(part.begin, part.size); !done) {
      return done;
    }
    if (access == Access::kNone) {
      if (Result done = set_access(part.begin, part.size, access); !done) {
        return done;
      }
    }
  }
  return {};
}

/// Cuts a placeholder of exactly this range out of the one around it.
Result
cut_placeholder(Reservation& reservation, std::byte* begin, std::size_t size) {
  auto* around = find_around(reservation.placeholders, begin);
  if (around == nullptr ||
      around->second - static_cast<std::size_t>(begin - around->first) < size) {
    return Result(ERROR_INVALID_ADDRESS); // a view is there
  }
  const auto [first, length] = *around;
  if (length == size) {
    return {};
  }
  if (VirtualFree(begin, size, MEM_RELEASE | MEM_PRESERVE_PLACEHOLDER) == 0) {
    return Result::last();
  }
  const auto lead = static_cast<std::size_t>(begin - first);
  reservation.placeholders.erase(first);
  if (lead > 0) {
    reservation.placeholders.emplace(first, lead);
  }
  reservation.placeholders.emplace(begin, size);
  if (lead + size < length) {
    reservation.placeholders.emplace(begin + size, length - lead - size);
  }
  return {};
}

/// Joins the placeholder at `begin` with its neighbours.
Result join_placeholders(Reservation& reservation, std::byte* begin) {
  auto& all = reservation.placeholders;
  auto first = all.find(begin);
  auto last = first;
  if (first != all.begin() &&
      std::prev(first)->first + std::prev(first)->second == begin) {
    --first;
  }
  if (std::next(last) != all.end() &&
      last->first + last->second == std::next(last)->first) {
    ++last;
  }
  if (first == last) {
    return {};
  }
  const auto size =
      static_cast<std::size_t>(last->first + last->second - first->first);
  if (VirtualFree(
          first->first, size, MEM_RELEASE | MEM_COALESCE_PLACEHOLDERS) == 0) {
    return Result::last();
  }
  first->second = size;
  all.erase(std::next(first), std::next(last));
  return {};
}

Result end_view(Reservation& reservation, std::byte* begin) {
  const auto view = reservation.views.find(begin);
  if (system_functions().unmap_view(
          GetCurrentProcess(), begin, MEM_PRESERVE_PLACEHOLDER) == 0) {
    return Result::last();
  }
  reservation.placeholders.emplace(begin, view->second.size);
  reservation.views.erase(view);
  return join_placeholders(reservation, begin);
}

} // namespace

std::size_t page_size() noexcept {
  // The unit of the addresses and offsets of views, 64 KiB.
  static const std::size_t size = [] {
    SYSTEM_INFO info{};
    GetSystemInfo(&info);
    return std::size_t{info.dwAllocationGranularity};
  }();
  return size;
}

Result reserve(std::size_t size, const char* name, std::byte*& begin) {
  if (!system_functions().has_placeholders()) {
    return Result(ERROR_OLD_WIN_VERSION);
  }
  void* reserved = system_functions().allocate(
      nullptr,
      nullptr,
      size,
      MEM_RESERVE | MEM_RESERVE_PLACEHOLDER,
      PAGE_NOACCESS,
      nullptr,
      0);
  if (reserved == nullptr) {
    return Result::last();
  }
  const HANDLE mark = name == nullptr
      ? nullptr
      : CreateEventW(nullptr, TRUE, FALSE, name_of_reservation(name).c_str());
  begin = static_cast<std::byte*>(reserved);
  const std::lock_guard lock(reservations().mutex);
  reservations().all.emplace(
      begin, Reservation{size, mark, {{begin, size}}, {}});
  return {};
}

void end_reservation(std::byte* begin, std::size_t /*size*/) noexcept {
  const std::lock_guard lock(reservations().mutex);
  const auto found = reservations().all.find(begin);
  for (const auto& [view, ignored] : found->second.views) {
    system_functions().unmap_view(GetCurrentProcess(), view, 0);
  }
  for (const auto& [placeholder, ignored] : found->second.placeholders) {
    VirtualFree(placeholder, 0, MEM_RELEASE);
  }
  const HandleScope closed(found->second.mark);
  reservations().all.erase(found);
}

Result map_reserved(
    std::byte* begin,
    std::size_t size,
    const File& file,
    std::uint64_t offset,
    Access access) {
  const std::lock_guard lock(reservations().mutex);
  auto* found = find_around(reservations().all, begin);
  if (found == nullptr) {
    return Result(ERROR_INVALID_ADDRESS);
  }
  Reservation& reservation = found->second;
  if (Result cut = cut_placeholder(reservation, begin, size); !cut) {
    return cut;
  }
  if (system_functions().map_view(
          to_handle(file.handle()),
          nullptr,
          begin,
          offset,
          size,
          MEM_REPLACE_PLACEHOLDER,
          PAGE_READWRITE,
          nullptr,
          0) == nullptr) {
    const Result failed = Result::last();
    static_cast<void>(join_placeholders(reservation, begin));
    return failed;
  }
  reservation.placeholders.erase(begin);
  reservation.views.emplace(begin, View{size, file.id(), offset, access});
  ProcessId self = 0;
  if (!this_process(self) || file.id().first != self) {
    // The owner of the file commits pages without this process.
    if (Result done = commit_in_views(file.id(), offset, size); !done) {
      return done;
    }
  }
  if (access == Access::kNone) {
    for (const Part& part : parts_of(begin, size)) {
      if (part.committed) {
        if (Result done = set_access(part.begin, part.size, access); !done) {
          return done;
        }
      }
    }
  }
  return {};
}

Result unmap_reserved(std::byte* begin, std::size_t /*size*/) {
  const std::lock_guard lock(reservations().mutex);
  auto* found = find_around(reservations().all, begin);
  if (found == nullptr || found->second.views.count(begin) == 0) {
    return {}; // reserved already
  }
  return end_view(found->second, begin);
}

Result protect(std::byte* begin, std::size_t size, Access access) {
  const std::lock_guard lock(reservations().mutex);
  auto* found = find_view(begin);
  if (found == nullptr) {
    return Result(ERROR_INVALID_ADDRESS);
  }
  View& view = found->second;
  if (access == Access::kReadWrite) {
    const auto offset =
        view.offset + static_cast<std::uint64_t>(begin - found->first);
    if (Result done = commit_in_views(view.file, offset, size); !done) {
      return done;
    }
  }
  for (const Part& part : parts_of(begin, size)) {
    if (!part.committed) {
      view.unused = Access::kNone; // from here on, protect() opens pages
    } else if (Result done = set_access(part.begin, part.size, access); !done) {
      return done;
    }
  }
  return {};
}

Result commit(std::byte* begin, std::size_t size) {
  Reservations& all = reservations();
  const std::lock_guard lock(all.mutex);
  auto* found = find_view(begin);
  if (found == nullptr) {
    return Result(ERROR_INVALID_ADDRESS);
  }
  const auto& [start, view] = *found;
  const std::uint64_t offset =
      view.offset + static_cast<std::uint64_t>(begin - start);
  std::vector<Chunk>& chunks = all.chunks[view.file];
  const auto end =
      static_cast<std::size_t>((offset + size + kChunk - 1) / kChunk);
  chunks.resize(std::max(chunks.size(), end));
  for (auto chunk = static_cast<std::size_t>(offset / kChunk); chunk < end;) {
    std::size_t next = chunk;
    while (next < end && !chunks[next].committed) {
      ++next;
    }
    if (next > chunk) {
      if (Result done = commit_in_views(
              view.file, chunk * kChunk, (next - chunk) * kChunk);
          !done) {
        return done;
      }
    } else {
      ++next;
    }
    for (; chunk < next; ++chunk) {
      chunks[chunk] = {.committed = true, .used = true};
    }
  }
  return {};
}

std::vector<UsedPages>
find_used(const FileId& file, std::uint64_t offset, std::size_t size) {
  Reservations& all = reservations();
  const std::lock_guard lock(all.mutex);
  std::vector<Chunk>& chunks = all.chunks[file];
  std::vector<UsedPages> result;
  const std::uint64_t end = offset + size;
  for (std::uint64_t at = offset; at < end;) {
    const auto chunk = static_cast<std::size_t>(at / kChunk);
    const std::uint64_t next =
        std::min<std::uint64_t>((chunk + 1) * kChunk, end);
    if (chunk >= chunks.size()) {
      break;
    }
    if (chunks[chunk].used) {
      if (result.empty() || result.back().offset + result.back().size != at) {
        result.push_back({at, 0});
      }
      result.back().size += static_cast<std::size_t>(next - at);
    }
    at = next;
  }
  return result;
}

void set_unused(const FileId& file, const UsedPages& pages) {
  Reservations& all = reservations();
  const std::lock_guard lock(all.mutex);
  std::vector<Chunk>& chunks = all.chunks[file];
  // Chunks that are only in part in the range may have other data.
  const auto end =
      static_cast<std::size_t>((pages.offset + pages.size) / kChunk);
  for (auto chunk =
           static_cast<std::size_t>((pages.offset + kChunk - 1) / kChunk);
       chunk < end;
       ++chunk) {
    chunks[chunk].used = false;
  }
}

Result map(
    const File& file,
    std::uint64_t offset,
    std::size_t size,
    bool /*inherited*/, // nothing is forked
    std::byte*& begin) {
  void* mapped = MapViewOfFile(
      to_handle(file.handle()),
      FILE_MAP_READ | FILE_MAP_WRITE,
      static_cast<DWORD>(offset >> 32),
      static_cast<DWORD>(offset),
      size);
  if (mapped == nullptr) {
    return Result::last();
  }
  auto* view = static_cast<std::byte*>(mapped);
  if (Result committed = commit_part(view, size); !committed) {
    UnmapViewOfFile(mapped);
    return committed;
  }
  begin = view;
  return {};
}

void unmap(std::byte* begin, std::size_t /*size*/) noexcept {
  UnmapViewOfFile(begin);
}

} // namespace openreg::platform
