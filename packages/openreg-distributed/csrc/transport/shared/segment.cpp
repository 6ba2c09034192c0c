// SPDX-License-Identifier: BSD-3-Clause
// The layout of the shared file. Pages take no memory until they are used.
#include "transport/shared/segment.h"

#include <random>
#include <utility>

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

std::unique_ptr<Segment> Segment::map(int ranks, SharedFile file) {
  std::byte* begin = file ? file.map(size_for(ranks)) : nullptr;
  if (begin == nullptr) {
    return nullptr;
  }
  return std::unique_ptr<Segment>(new Segment(ranks, std::move(file), begin));
}

Segment::Segment(int ranks, SharedFile file, std::byte* begin)
    : ranks_(ranks), file_(std::move(file)), begin_(begin) {}

bool Segment::is_mapped() const {
  return maker_.is_this_process();
}

std::unique_ptr<Segment> Segment::create(int ranks) {
  auto segment = map(ranks, SharedFile::create(size_for(ranks)));
  if (segment) {
    reinterpret_cast<Head*>(segment->begin_)->token = new_token();
  }
  return segment;
}

std::unique_ptr<Segment>
Segment::open(int ranks, int process, int64_t file, uint64_t token) {
  auto segment = map(ranks, SharedFile::open(process, file, size_for(ranks)));
  return segment && segment->token() == token ? std::move(segment) : nullptr;
}

Segment::~Segment() {
  if (is_mapped()) {
    SharedFile::unmap(begin_, size_for(ranks_));
  }
}

void Segment::close_file() {
  file_.close();
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
