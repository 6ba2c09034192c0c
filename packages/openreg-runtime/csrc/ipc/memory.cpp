// SPDX-License-Identifier: BSD-3-Clause
// Notes of shared blocks, and mappings of other processes' blocks.
#include "ipc/memory.h"

#include "base/error.h"
#include "base/file_limit.h"
#include "memory/host_access.h"
#include "platform/mapping.h"
#include "platform/sharing.h"

#include <atomic>
#include <random>
#include <string>
#include <utility>

namespace openreg::ipc {
namespace {

std::uint64_t new_id() {
  std::random_device random;
  std::uint64_t id = 0;
  while (id == 0) {
    id = std::uint64_t{random()} << 32 | random();
  }
  return id;
}

/// Where the claims of other processes on a block are.
std::uint64_t claims_at(std::uint64_t position) {
  return position + offsetof(SharedNote, claims);
}

/// Ensures that the next push_back() does not throw.
template <typename Element>
void make_room_for_one(std::vector<Element>& elements) {
  if (elements.size() == elements.capacity()) {
    elements.reserve(2 * elements.size() + 1);
  }
}

} // namespace

void Exports::write(std::uint64_t position, const void* bytes, std::size_t size)
    const {
  // Writing extends the file.
  check_file_size(position + size, "a shared block");
  if (const auto written =
          platform::write_at(memory_.file(device_), position, bytes, size);
      !written) {
    throw Failure(
        orErrorMemoryAllocation,
        "cannot write the shared note of a memory block: " + written.text());
  }
}

/// Maps the id of a note, so that it can be erased without write(), which a
/// lower file size limit could forbid by then. A concurrent reader sees the
/// whole note or none. The page stays mapped.
std::atomic<std::uint64_t>* Exports::map_id(std::uint64_t position) {
  const std::size_t size = AddressSpace::page_size();
  static_assert(offsetof(Note, id) == 0);
  std::byte*& page = pages_[position / size];
  if (page == nullptr) {
    // A forked child must not erase its parent's notes.
    if (const auto mapped = platform::map(
            memory_.file(device_),
            position / size * size,
            size,
            /*inherited=*/false,
            page);
        !mapped) {
      throw Failure(
          orErrorMemoryAllocation,
          "cannot map the shared note of a memory block: " + mapped.text());
    }
  }
  return reinterpret_cast<std::atomic<std::uint64_t>*>(page + position % size);
}

orIpcMemHandle_t Exports::add(std::size_t offset, std::size_t size) {
  auto known = places_.find(offset);
  if (known == places_.end()) {
    const bool reuse = !unused_.empty();
    const std::uint64_t position = reuse
        ? unused_.back()
        : memory_.own_span() + positions_ * sizeof(SharedNote);
    const Place place{position, new_id(), map_id(position)};
    const Note note{
        place.id, offset, size, static_cast<std::uint64_t>(device_)};
    write(place.position, &note, sizeof(note));
    known = places_.emplace(offset, place).first;
    if (reuse) {
      unused_.pop_back();
    } else {
      ++positions_;
    }
  }
  orIpcMemHandle_t handle{};
  write_handle(
      handle.reserved,
      Kind::kMemory,
      memory_.file(device_),
      known->second.position,
      known->second.id);
  return handle;
}

bool Exports::remove(std::size_t offset) {
  const auto known = places_.find(offset);
  if (known == places_.end()) {
    return false;
  }
  const std::uint64_t position = known->second.position;
  // Nothing throws from here on, so that a block that others have open is not
  // lost.
  make_room_for_one(kept_);
  make_room_for_one(unused_);
  known->second.noted_id->store(0);
  places_.erase(known);
  if (!is_open(position)) {
    unused_.push_back(position);
    return false;
  }
  kept_.push_back({offset, position});
  return true;
}

std::vector<std::size_t> Exports::clear() {
  std::vector<std::size_t> open;
  open.reserve(places_.size());
  while (!places_.empty()) {
    const std::size_t offset = places_.begin()->first;
    if (remove(offset)) {
      open.push_back(offset);
    }
  }
  return open;
}

bool Exports::is_open(std::uint64_t position) const {
  return platform::is_claimed(memory_.file(device_), claims_at(position));
}

std::vector<std::size_t> Exports::take_closed() {
  std::vector<std::size_t> closed;
  for (std::size_t i = kept_.size(); i-- > 0;) {
    if (!is_open(kept_[i].position)) {
      closed.push_back(kept_[i].offset);
      unused_.push_back(kept_[i].position);
      kept_.erase(kept_.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }
  return closed;
}

Claim::Claim(std::shared_ptr<const File> file, std::uint64_t position)
    : file_(std::move(file)), position_(position) {
  if (const auto begun =
          platform::begin_claim(*file_, claims_at(position), claim_);
      !begun) {
    throw Failure(
        orErrorMemoryAllocation,
        begun.is_full()
            ? "the memory block is open in " +
                std::to_string(platform::ClaimRoom::kMost) +
                " processes, the most that this system allows"
            : "cannot lock the shared note of a memory block: " + begun.text());
  }
}

Claim::~Claim() {
  if (file_) {
    platform::end_claim(*file_, claims_at(position_), claim_);
  }
}

Offer find_offer(const orIpcMemHandle_t& bytes) {
  const Handle handle = read_handle(bytes.reserved, Kind::kMemory);
  // The note is claimed before it is read.
  Offer offer{
      Claim(std::make_shared<File>(open_file(handle)), handle.position),
      handle.file,
      {}};
  const auto read = platform::read_at(
      *offer.claim.file(), handle.position, &offer.note, sizeof(offer.note));
  if (!read || offer.note.id != handle.id) {
    fail_gone(handle);
  }
  return offer;
}

std::byte* Imports::open(Offer offer) {
  for (auto& [begin, mapping] : mappings_) {
    if (mapping.file == offer.file_id && mapping.id == offer.note.id) {
      ++mapping.openings;
      return mapping.pages + (begin - mapping.pages);
    }
  }
  const std::size_t page = AddressSpace::page_size();
  const std::size_t lead = offer.note.offset % page;
  const std::size_t length = (lead + offer.note.size + page - 1) / page * page;
  std::byte* pages = find_pages(length);
  Claim claim = claim_of(offer);
  memory_.map_foreign(pages, length, *claim.file(), offer.note.offset - lead);
  mappings_.emplace(
      pages + lead,
      Mapping{
          std::move(claim),
          offer.file_id,
          offer.note.id,
          pages,
          length,
          offer.note.size,
          1});
  return pages + lead;
}

/// Reuses an open descriptor, because the number per process is limited.
Claim Imports::claim_of(Offer& offer) const {
  for (const auto& [begin, mapping] : mappings_) {
    if (mapping.file == offer.file_id) {
      return {mapping.claim.file(), offer.claim.position()};
    }
  }
  return std::move(offer.claim);
}

std::byte* Imports::find_pages(std::size_t length) const {
  // With an unused page behind each mapping, so that accesses past the end
  // fault.
  const std::size_t room = length + AddressSpace::page_size();
  std::byte* gap = memory_.device_mapping(device_) + memory_.own_span();
  for (const auto& [begin, mapping] : mappings_) {
    if (static_cast<std::size_t>(mapping.pages - gap) >= room) {
      return gap;
    }
    gap = mapping.pages + mapping.length + AddressSpace::page_size();
  }
  const std::byte* end = memory_.device_mapping(device_) + memory_.span();
  if (end - gap < static_cast<std::ptrdiff_t>(room)) {
    throw Failure(
        orErrorMemoryAllocation,
        "device " + std::to_string(device_) + " has no room to map " +
            std::to_string(length) +
            " bytes of another process: close other blocks, or raise "
            "OPENREG_DEVICE_MEMORY");
  }
  return gap;
}

bool Imports::close(const void* begin, bool last) {
  const auto mapping = mappings_.find(static_cast<const std::byte*>(begin));
  if (mapping == mappings_.end()) {
    throw Failure(
        orErrorInvalidValue,
        "devPtr " + hex(begin) +
            " is not the start of a block that orIpcOpenMemHandle opened: it "
            "was closed already, or never opened");
  }
  if (mapping->second.openings == 1) {
    if (!last) {
      return false;
    }
    unmap(mapping);
  } else {
    --mapping->second.openings;
  }
  return true;
}

Imports::Mappings::iterator Imports::unmap(Mappings::iterator mapping) {
  host_access::close(memory_, mapping->first);
  memory_.unmap_foreign(mapping->second.pages, mapping->second.length);
  return mappings_.erase(mapping);
}

void Imports::clear() {
  for (auto mapping = mappings_.begin(); mapping != mappings_.end();) {
    mapping = unmap(mapping);
  }
}

bool Imports::covers(const void* pointer) const noexcept {
  const auto* address = static_cast<const std::byte*>(pointer);
  const std::byte* begin = memory_.device_mapping(device_);
  return address >= begin + memory_.own_span() &&
      address < begin + memory_.span();
}

std::optional<Imports::Block> Imports::find(const void* pointer) const {
  const auto* address = static_cast<const std::byte*>(pointer);
  auto mapping = mappings_.upper_bound(address);
  if (mapping == mappings_.begin()) {
    return std::nullopt;
  }
  --mapping;
  const auto offset = static_cast<std::size_t>(address - mapping->first);
  if (offset >= mapping->second.size) {
    return std::nullopt;
  }
  return Block{
      mapping->second.pages + (mapping->first - mapping->second.pages),
      mapping->second.size};
}

std::size_t Imports::openings() const {
  std::size_t result = 0;
  for (const auto& [begin, mapping] : mappings_) {
    result += mapping.openings;
  }
  return result;
}

} // namespace openreg::ipc
