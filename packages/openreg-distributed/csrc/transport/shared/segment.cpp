// SPDX-License-Identifier: BSD-3-Clause
// The layout of the shared file. Pages take no memory until they are used.
#include "transport/shared/segment.h"

#include <cstdio>
#include <fcntl.h>
#include <memory>
#include <random>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

namespace openreg::distributed {
namespace {

constexpr size_t kPage = 4096;

struct Head {
  uint64_t token;
};

size_t whole_pages(size_t bytes) {
  return (bytes + kPage - 1) / kPage * kPage;
}

// The offset of the rank states, after the header.
size_t states_at() {
  return kPage;
}
size_t channels_at(size_t ranks) {
  return states_at() + ranks * sizeof(RankState);
}
size_t slots_at(size_t ranks) {
  return whole_pages(channels_at(ranks) + ranks * ranks * sizeof(ChannelState));
}

uint64_t new_token() {
  std::random_device random;
  return static_cast<uint64_t>(random()) << 32 | random();
}

} // namespace

size_t Segment::size_for(int ranks) {
  const auto count = static_cast<size_t>(ranks);
  return whole_pages(
      slots_at(count) + count * 2 * kSlotSpan +
      count * count * kParts * kPartSpan);
}

std::unique_ptr<Segment> Segment::map(int ranks, int file) {
  const size_t size = size_for(ranks);
  void* begin =
      mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (begin == MAP_FAILED) {
    close(file);
    return nullptr;
  }
  // A forked child is not a rank.
  madvise(begin, size, MADV_DONTFORK);
  return std::unique_ptr<Segment>(
      new Segment(ranks, file, static_cast<std::byte*>(begin)));
}

Segment::Segment(int ranks, int file, std::byte* begin)
    : ranks_(ranks), file_(file), begin_(begin) {}

bool Segment::is_mapped() const {
  return maker_.is_this_process();
}

std::unique_ptr<Segment> Segment::create(int ranks) {
  // Beyond this limit, sizing a file ends the process.
  rlimit limit{};
  if (getrlimit(RLIMIT_FSIZE, &limit) != 0 ||
      limit.rlim_cur < size_for(ranks)) {
    return nullptr;
  }
  const int file = memfd_create("occl", MFD_CLOEXEC);
  if (file < 0) {
    return nullptr;
  }
  if (ftruncate(file, static_cast<off_t>(size_for(ranks))) != 0) {
    close(file);
    return nullptr;
  }
  auto segment = map(ranks, file);
  if (segment) {
    reinterpret_cast<Head*>(segment->begin_)->token = new_token();
  }
  return segment;
}

std::unique_ptr<Segment>
Segment::open(int ranks, pid_t process, int file, uint64_t token) {
  char path[64];
  std::snprintf(path, sizeof(path), "/proc/%d/fd/%d", process, file);
  const int own = ::open(path, O_RDWR | O_CLOEXEC);
  if (own < 0) {
    return nullptr;
  }
  struct stat status{};
  if (fstat(own, &status) != 0 ||
      static_cast<size_t>(status.st_size) != size_for(ranks)) {
    close(own);
    return nullptr;
  }
  auto segment = map(ranks, own);
  return segment && segment->token() == token ? std::move(segment) : nullptr;
}

Segment::~Segment() {
  if (is_mapped()) {
    munmap(begin_, size_for(ranks_));
  }
  close_file();
}

void Segment::close_file() {
  if (file_ >= 0) {
    close(file_);
    file_ = -1;
  }
}

uint64_t Segment::token() const {
  return reinterpret_cast<const Head*>(begin_)->token;
}

RankState& Segment::state(int rank) const {
  return reinterpret_cast<RankState*>(begin_ + states_at())[rank];
}

ChannelState& Segment::channel(int from, int to) const {
  return reinterpret_cast<ChannelState*>(
      begin_ + channels_at(static_cast<size_t>(ranks_)))[from * ranks_ + to];
}

std::byte* Segment::slot(int rank, uint64_t step) const {
  const size_t index = static_cast<size_t>(rank) * 2 + step % 2;
  return begin_ + slots_at(static_cast<size_t>(ranks_)) + index * kSlotSpan;
}

PartHeader& Segment::part(int from, int to, uint64_t number) const {
  const auto ranks = static_cast<size_t>(ranks_);
  const size_t channel =
      static_cast<size_t>(from) * ranks + static_cast<size_t>(to);
  const size_t index = channel * kParts + number % kParts;
  return *reinterpret_cast<PartHeader*>(
      begin_ + slots_at(ranks) + ranks * 2 * kSlotSpan + index * kPartSpan);
}

} // namespace openreg::distributed
