// SPDX-License-Identifier: BSD-3-Clause
// Memory files: sections of the page file. Other processes open them by name.
#include "platform/file.h"

#include "platform/mapping.h"
#include "platform/process.h"
#include "platform/windows/names.h"
#include "platform/windows/system.h"
#include "platform/windows/used_pages.h"

#include <atomic>
#include <cstring>

namespace openreg::platform {
namespace {

/// A view of a part of a file, for one access.
class Window {
 public:
  /// The offset does not have to be a multiple of the page size.
  Window(const File& file, std::uint64_t offset, std::size_t size) noexcept {
    const auto lead = static_cast<std::size_t>(offset % page_size());
    const std::uint64_t from = offset - lead;
    view_ = static_cast<std::byte*>(MapViewOfFile(
        to_handle(file.handle()),
        FILE_MAP_READ | FILE_MAP_WRITE,
        static_cast<DWORD>(from >> 32),
        static_cast<DWORD>(from),
        lead + size));
    begin_ = view_ == nullptr ? nullptr : view_ + lead;
  }
  Window(const Window&) = delete;
  Window& operator=(const Window&) = delete;
  ~Window() {
    if (view_ != nullptr) {
      UnmapViewOfFile(view_);
    }
  }
  /// Null if the file cannot be mapped.
  std::byte* begin() const noexcept {
    return begin_;
  }

 private:
  std::byte* view_;
  std::byte* begin_;
};

} // namespace

File::~File() {
  if (handle_ != kNone) {
    CloseHandle(to_handle(handle_));
  }
}

Result create_memory_file(
    const char* /*name*/,
    std::size_t size,
    std::size_t room,
    File& file) {
  static std::atomic<std::uint64_t> last{0};
  FileId id;
  if (Result found = this_process(id.first); !found) {
    return found;
  }
  id.second = ++last;
  const std::uint64_t whole = created_size(size, room);
  const HANDLE made = CreateFileMappingW(
      INVALID_HANDLE_VALUE,
      nullptr,
      PAGE_READWRITE | SEC_RESERVE, // see mapping.cpp
      static_cast<DWORD>(whole >> 32),
      static_cast<DWORD>(whole),
      name_of(id).c_str());
  if (made == nullptr) {
    return Result::last();
  }
  File opened(to_number(made));
  opened.set_id(id);
  file = std::move(opened);
  return {};
}

std::size_t created_size(std::size_t size, std::size_t room) noexcept {
  const std::size_t page = page_size();
  return (size + room + page - 1) / page * page;
}

Result
read_at(const File& file, std::uint64_t offset, void* to, std::size_t size) {
  const Window window(file, offset, size);
  // The pages may not be committed yet.
  if (window.begin() == nullptr ||
      VirtualAlloc(window.begin(), size, MEM_COMMIT, PAGE_READWRITE) ==
          nullptr) {
    return Result::last();
  }
  std::memcpy(to, window.begin(), size);
  return {};
}

Result write_at(
    const File& file,
    std::uint64_t offset,
    const void* from,
    std::size_t size) {
  const Window window(file, offset, size);
  if (window.begin() == nullptr ||
      VirtualAlloc(window.begin(), size, MEM_COMMIT, PAGE_READWRITE) ==
          nullptr) {
    return Result::last();
  }
  std::memcpy(window.begin(), from, size);
  return {};
}

Result release_pages(const File& file, std::uint64_t offset, std::size_t size) {
  // Windows decommits no page of a section.
  for (const UsedPages& pages : find_used(file.id(), offset, size)) {
    const Window window(file, pages.offset, pages.size);
    if (window.begin() == nullptr) {
      return Result::last();
    }
    std::memset(window.begin(), 0, pages.size);
    set_unused(file.id(), pages);
  }
  return {};
}

std::optional<std::uint64_t> file_size_limit() noexcept {
  return std::nullopt;
}

} // namespace openreg::platform
