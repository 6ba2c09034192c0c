// SPDX-License-Identifier: BSD-3-Clause
// Blocks of device memory that processes share.
//
// The process that made a block notes it in the block's own file, behind the
// memory, under a number that no other block ever has. A handle says where that
// note is; who opens it reads there whether the block still lives. The file is
// mapped in whole pages, so neighbours of the block come along.
//
// Who has a block open has a read lock on its note, which ends with the process
// and the children that it forked, at the latest. The owner ends the note first
// and looks for locks then, and who opens locks first and reads then: so a
// block that somebody opens is either found freed, or its bytes stay until all
// have closed it.
#pragma once

#include "ipc/handle.h"
#include "memory/address_space.h"

#include <openreg/openreg.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

namespace openreg::ipc {

/// What the owner of a block notes of it.
struct Note {
  std::uint64_t id; // 0 where no block is shared
  std::uint64_t offset;
  std::uint64_t size; // as requested
  std::uint64_t device;
};

/// The blocks of one device that were offered to others. Not thread safe.
class Exports {
 public:
  Exports(const AddressSpace& memory, int device)
      : memory_(memory), device_(device) {}

  /// A handle of the block, the same one each time. Throws
  /// orErrorMemoryAllocation.
  orIpcMemHandle_t add(std::size_t offset, std::size_t size);
  /// True for a block that has a handle.
  bool has(std::size_t offset) const {
    return places_.count(offset) != 0;
  }
  /// From here on the block cannot be opened any more. True if others have it
  /// open: take_closed() tells when they have closed it.
  bool remove(std::size_t offset);
  /// Removes all; returns the offsets of blocks that others have open.
  std::vector<std::size_t> clear();
  /// True if others had a removed block open when it was looked at last.
  bool keeps() const noexcept {
    return !kept_.empty();
  }
  /// The offsets of removed blocks that by now all others have closed, once.
  std::vector<std::size_t> take_closed();

 private:
  struct Place {
    std::uint64_t position; // of the note in the file
    std::uint64_t id;
    std::atomic<std::uint64_t>* noted_id; // that of the note
  };

  struct Kept {
    std::size_t offset; // of the block
    std::uint64_t position;
  };

  void write(std::uint64_t position, const void* bytes, std::size_t size) const;
  std::atomic<std::uint64_t>* map_id(std::uint64_t position);
  bool is_open(std::uint64_t position) const;

  const AddressSpace& memory_;
  const int device_;
  std::unordered_map<std::size_t, Place> places_; // by offset of the block
  std::vector<Kept> kept_;            // removed, and open in other processes
  std::vector<std::uint64_t> unused_; // positions of notes that ended
  std::uint64_t positions_ = 0;       // that were used so far
  std::map<std::uint64_t, std::byte*> pages_; // of notes, by position
};

/// A read lock on a note: as long as it lives, the bytes of the block stay.
class Claim {
 public:
  /// Throws orErrorMemoryAllocation.
  Claim(std::shared_ptr<const File> file, std::uint64_t position);
  Claim(Claim&& other) noexcept = default; // leaves no file
  Claim(const Claim&) = delete;
  Claim& operator=(const Claim&) = delete;
  Claim& operator=(Claim&&) = delete;
  ~Claim();

  const std::shared_ptr<const File>& file() const noexcept {
    return file_;
  }
  std::uint64_t position() const noexcept {
    return position_;
  }

 private:
  std::shared_ptr<const File> file_;
  std::uint64_t position_;
};

/// A handle that was opened.
struct Offer {
  Claim claim;
  FileId file_id;
  Note note;
};

/// Opens the file of a block that another process offers. Throws
/// orErrorInvalidValue, orErrorNotPermitted and orErrorMemoryAllocation.
Offer find_offer(const orIpcMemHandle_t& handle);

/// The blocks of other processes that are mapped on one device. Not thread
/// safe, but for covers().
class Imports {
 public:
  struct Block {
    std::byte* begin;
    std::size_t size;
  };

  Imports(const AddressSpace& memory, int device)
      : memory_(memory), device_(device) {}

  /// Where the block starts here; what is open already is counted. Throws
  /// orErrorMemoryAllocation.
  std::byte* open(Offer offer);
  /// Takes one opening back. The last one only if `last`; otherwise it stays,
  /// and the result is false. Throws orErrorInvalidValue.
  bool close(const void* begin, bool last);
  /// Takes all openings back.
  void clear();

  /// True for an address where only such blocks can be.
  bool covers(const void* pointer) const noexcept;
  std::optional<Block> find(const void* pointer) const;
  std::size_t openings() const;

 private:
  struct Mapping {
    Claim claim;
    FileId file;
    std::uint64_t id;
    std::byte* pages;
    std::size_t length; // of the pages
    std::size_t size;   // of the block
    std::size_t openings;
  };
  using Mappings = std::map<const std::byte*, Mapping>; // by start of the block

  std::byte* find_pages(std::size_t length) const;
  Claim claim_of(Offer& offer) const;
  Mappings::iterator unmap(Mappings::iterator mapping);

  const AddressSpace& memory_;
  const int device_;
  Mappings mappings_;
};

} // namespace openreg::ipc
