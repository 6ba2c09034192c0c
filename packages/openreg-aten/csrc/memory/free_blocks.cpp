// SPDX-License-Identifier: BSD-3-Clause
// Best fit by binary search, and neighbours in doubly linked lists.
#include "memory/free_blocks.h"

#include "memory/size_classes.h"

#include <algorithm>
#include <functional>
#include <utility>

namespace openreg::aten {
namespace {

struct ByPlaceAndSize {
  bool operator()(const Block* left, const Block* right) const {
    if (left->pool != right->pool) {
      return left->pool < right->pool;
    }
    if (left->stream != right->stream) {
      return std::less<>()(left->stream, right->stream);
    }
    return left->size != right->size ? left->size < right->size
                                     : left->pointer < right->pointer;
  }
};

} // namespace

size_t FreeBlocks::find_fit(bool small, const Place& place, size_t size) const {
  const Set& blocks = of_kind(small);
  const auto fit = std::lower_bound(
      blocks.begin(),
      blocks.end(),
      size,
      [&place](const Block* block, size_t wanted) {
        if (block->pool != place.pool) {
          return block->pool < place.pool;
        }
        return block->stream != place.stream
            ? std::less<>()(block->stream, place.stream)
            : block->size < wanted;
      });
  return static_cast<size_t>(fit - blocks.begin());
}

Block* FreeBlocks::make() {
  if (spare_.empty()) {
    return new Block{};
  }
  Block* block = spare_.back();
  spare_.pop_back();
  return block;
}

void FreeBlocks::recycle(Block* block) {
  *block = Block{};
  spare_.push_back(block);
}

void FreeBlocks::insert(Block* block) {
  Set& blocks = set_of(block);
  blocks.insert(
      std::lower_bound(blocks.begin(), blocks.end(), block, ByPlaceAndSize{}),
      block);
}

void FreeBlocks::erase(Block* block) {
  Set& blocks = set_of(block);
  blocks.erase(
      std::lower_bound(blocks.begin(), blocks.end(), block, ByPlaceAndSize{}));
}

Block* FreeBlocks::take(
    bool small,
    const Place& place,
    size_t size,
    uint64_t completed) {
  Set& blocks = small ? small_ : large_;
  auto fit = blocks.begin() +
      static_cast<std::ptrdiff_t>(find_fit(small, place, size));
  while (fit != blocks.end() && (*fit)->ticket > completed) {
    ++fit;
  }
  if (fit == blocks.end() || (*fit)->stream != place.stream ||
      (*fit)->pool != place.pool || !may_serve((*fit)->size, size)) {
    return nullptr;
  }
  Block* block = *fit;
  blocks.erase(fit);
  return block;
}

void FreeBlocks::split(Block* block, size_t size, uint64_t age) {
  Block* rest = make();
  rest->pointer = block->pointer + size;
  rest->size = block->size - size;
  rest->stream = block->stream;
  rest->pool = block->pool;
  rest->segment = block->segment;
  rest->small = block->small;
  rest->ticket = block->ticket;
  rest->age = age;
  rest->previous = block;
  rest->next = block->next;
  if (block->next) {
    block->next->previous = rest;
  }
  block->next = rest;
  block->size = size;
  insert(rest);
}

size_t FreeBlocks::add(Block* block) {
  size_t merged = 0;
  merged += merge(block, block->previous) ? 1 : 0;
  merged += merge(block, block->next) ? 1 : 0;
  insert(block);
  return merged;
}

/// Merges a free neighbour into a block that is about to be added.
bool FreeBlocks::merge(Block* block, Block* neighbour) {
  if (neighbour == nullptr || !neighbour->is_free()) {
    return false;
  }
  erase(neighbour);
  if (block->previous == neighbour) {
    block->pointer = neighbour->pointer;
    block->segment_context = std::move(neighbour->segment_context);
    block->previous = neighbour->previous;
    if (block->previous) {
      block->previous->next = block;
    }
  } else {
    block->next = neighbour->next;
    if (block->next) {
      block->next->previous = block;
    }
  }
  block->size += neighbour->size;
  block->ticket = std::max(block->ticket, neighbour->ticket);
  recycle(neighbour);
  return true;
}

void FreeBlocks::drop(Block* block) {
  erase(block);
  recycle(block);
}

void FreeBlocks::drop_all() {
  for (Set* blocks : {&small_, &large_}) {
    std::for_each(blocks->begin(), blocks->end(), [this](Block* block) {
      recycle(block);
    });
    blocks->clear();
  }
}

} // namespace openreg::aten
