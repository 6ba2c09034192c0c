// SPDX-License-Identifier: BSD-3-Clause
// Opens and closes pages that several blocks may share.
#include "memory/host_access.h"

#include <cstdint>
#include <map>
#include <mutex>

namespace openreg::host_access {
namespace {

/// Whole pages, [begin, end).
struct Pages {
  std::uintptr_t begin;
  std::uintptr_t end;
};

struct Registry {
  std::mutex mutex;
  std::map<const void*, Pages> open; // by the start of the block
};

Registry& registry() {
  static auto* value = new Registry;
  return *value;
}

void protect(const AddressSpace& memory, const Pages& pages, bool open) {
  memory.protect(
      reinterpret_cast<std::byte*>(pages.begin), pages.end - pages.begin, open);
}

} // namespace

void open(const AddressSpace& memory, const Block& block) {
  const std::uintptr_t page = AddressSpace::page_size();
  const auto address = reinterpret_cast<std::uintptr_t>(block.begin);
  const Pages pages{
      address / page * page, (address + block.size + page - 1) / page * page};
  const std::lock_guard lock(registry().mutex);
  protect(memory, pages, true);
  registry().open.insert_or_assign(block.begin, pages);
}

void close(const AddressSpace& memory, const void* begin) {
  const std::lock_guard lock(registry().mutex);
  auto& blocks = registry().open;
  const auto found = blocks.find(begin);
  if (found == blocks.end()) {
    return;
  }
  const Pages closed = found->second;
  blocks.erase(found);
  protect(memory, closed, false);
  for (const auto& [start, pages] : blocks) {
    if (pages.begin < closed.end && closed.begin < pages.end) {
      protect(memory, pages, true);
    }
  }
}

void close_all(
    const AddressSpace& memory,
    const std::byte* begin,
    std::size_t size) {
  const std::lock_guard lock(registry().mutex);
  auto& blocks = registry().open;
  const auto last = blocks.lower_bound(begin + size);
  for (auto block = blocks.lower_bound(begin); block != last;) {
    protect(memory, block->second, false);
    block = blocks.erase(block);
  }
}

std::size_t open_count() {
  const std::lock_guard lock(registry().mutex);
  return registry().open.size();
}

} // namespace openreg::host_access
