// SPDX-License-Identifier: BSD-3-Clause
// Device memory blocks shared between processes.
//
// The owner of a block writes a note with a unique id behind the memory in the
// device's file. A handle contains the note's position. The opening process
// reads there whether the block is still live. The file is mapped in whole
// pages, so neighbours of the block are mapped, too.
//
// A process that has a block open holds a claim on its note, which ends at the
// latest with the process and its forked children. The owner erases the note
// before it looks for claims, and the opening process claims before it reads.
// So a block is either found freed, or its bytes stay until all
// processes have closed it.
#pragma once

#include "ipc/handle.h"
#include "memory/address_space.h"
#include "platform/sharing.h"

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

/// The note that the owner writes about a block.
struct Note {
  std::uint64_t id; // 0: no block is shared
  std::uint64_t offset;
  std::uint64_t size; // as requested
  std::uint64_t device;
};
/// The note in the file, with the claims of processes that have the block open.
struct SharedNote {
  Note note;
  platform::ClaimRoom claims;
};
static_assert(4096 % sizeof(SharedNote) == 0); // none crosses a page

/// The blocks of one device that are shared with other processes. Not thread
/// safe.
class Exports {
 public:
  Exports(const AddressSpace& memory, int device)
      : memory_(memory), device_(device) {}

  /// Returns a handle of the block, always the same one. Throws
  /// orErrorMemoryAllocation.
  orIpcMemHandle_t add(std::size_t offset, std::size_t size);
  /// True for a block that has a handle.
  bool has(std::size_t offset) const {
    return places_.count(offset) != 0;
  }
  /// Prevents further opening of the block. Returns true if other processes
  /// have it open: take_closed() returns it once they have closed it.
  bool remove(std::size_t offset);
  /// Removes all blocks; returns the offsets of blocks that others have open.
  std::vector<std::size_t> clear();
  /// True if a removed block was still open in another process at the last
  /// check.
  bool keeps() const noexcept {
    return !kept_.empty();
  }
  /// Returns, once, the offsets of removed blocks that all others have closed.
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

/// A claim on a note, which keeps the bytes of the block.
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
  int claim_ = 0;
};

/// A handle that was opened.
struct Offer {
  Claim claim;
  FileId file_id;
  Note note;
};

/// Opens the file of another process's block. Throws orErrorInvalidValue,
/// orErrorNotPermitted and orErrorMemoryAllocation.
Offer find_offer(const orIpcMemHandle_t& handle);

/// The blocks of other processes that are mapped on one device. Not thread
/// safe, except covers().
class Imports {
 public:
  struct Block {
    std::byte* begin;
    std::size_t size;
  };

  Imports(const AddressSpace& memory, int device)
      : memory_(memory), device_(device) {}

  /// Returns the start of the block in this process. An open block is counted.
  /// Throws orErrorMemoryAllocation.
  std::byte* open(Offer offer);
  /// Closes one opening. The last one is closed only if `last`; otherwise the
  /// result is false. Throws orErrorInvalidValue.
  bool close(const void* begin, bool last);
  /// Closes all openings.
  void clear();

  /// True for an address in the range reserved for blocks of other processes.
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
