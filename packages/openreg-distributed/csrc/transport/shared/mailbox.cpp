// SPDX-License-Identifier: BSD-3-Clause
// A message is split into parts. Each pair of ranks has a few slots for parts.
#include "transport/shared/mailbox.h"

#include "transport/copy.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <utility>

namespace openreg::distributed {
namespace {

// A send that has waited this long for its receive also stores messages from
// other ranks.
constexpr Milliseconds kPatience{10};

std::byte* bytes_of(PartHeader& part) {
  return reinterpret_cast<std::byte*>(&part + 1);
}

} // namespace

const Mailbox::Transfer Mailbox::kNobody{};

Mailbox::Mailbox(Peers& peers)
    : peers_(peers),
      patience_(Patience::of_attempts(peers.size())),
      outboxes_(static_cast<size_t>(peers.size())),
      inboxes_(static_cast<size_t>(peers.size())) {}

bool Mailbox::send(Transfer& transfer) {
  Outbox& outbox = outboxes_[static_cast<size_t>(transfer.peer)];
  if (!transfer.begun) {
    const std::lock_guard lock(outbox.mutex);
    if (outbox.owner != nullptr) {
      return false;
    }
    outbox.owner = &transfer;
    transfer.begun = true;
    if (const auto reason = peers_.gone(transfer.peer)) {
      C10_THROW_ERROR(DistBackendError, *reason);
    }
  }
  Segment& segment = peers_.segment();
  ChannelState& channel = segment.channel(peers_.rank(), transfer.peer);
  bool moved = false;
  while (!transfer.finished) {
    const uint64_t number = channel.written.load(std::memory_order_relaxed);
    if (number - channel.read.load(std::memory_order_acquire) ==
        Segment::kParts) {
      return moved;
    }
    PartHeader& part = segment.part(peers_.rank(), transfer.peer, number);
    part = {transfer.size, transfer.tag};
    const size_t count =
        std::min(transfer.size - transfer.done, Segment::kPartBytes);
    copy_bytes(bytes_of(part), transfer.data + transfer.done, count);
    transfer.done += count;
    transfer.finished = transfer.done == transfer.size;
    channel.written.store(number + 1, std::memory_order_release);
    peers_.ring(transfer.peer);
    moved = true;
  }
  drop(transfer, nullptr);
  return moved;
}

const PartHeader* Mailbox::next_part(int from) const {
  Segment& segment = peers_.segment();
  const ChannelState& channel = segment.channel(from, peers_.rank());
  const uint64_t number = channel.read.load(std::memory_order_relaxed);
  if (number == channel.written.load(std::memory_order_acquire)) {
    return nullptr;
  }
  return &segment.part(from, peers_.rank(), number);
}

bool Mailbox::read_parts(int from, std::byte* data, size_t size, size_t& done) {
  Segment& segment = peers_.segment();
  ChannelState& channel = segment.channel(from, peers_.rank());
  bool moved = false;
  do {
    const uint64_t number = channel.read.load(std::memory_order_relaxed);
    if (number == channel.written.load(std::memory_order_acquire)) {
      return moved;
    }
    const size_t count = std::min(size - done, Segment::kPartBytes);
    store_bytes(
        data + done,
        bytes_of(segment.part(from, peers_.rank(), number)),
        count,
        size);
    done += count;
    channel.read.store(number + 1, std::memory_order_release);
    peers_.ring(from);
    moved = true;
  } while (done < size);
  return moved;
}

bool Mailbox::receive_kept(Transfer& transfer, int from, Inbox& inbox) {
  const auto found = std::find_if(
      inbox.kept.begin(), inbox.kept.end(), [&](const Kept& message) {
        return message.tag == transfer.tag;
      });
  if (found == inbox.kept.end()) {
    return false;
  }
  check_size(transfer, from, found->bytes.size());
  copy_bytes(transfer.data, found->bytes.data(), transfer.size);
  inbox.kept.erase(found);
  transfer.peer = from;
  transfer.finished = true;
  return true;
}

bool Mailbox::keep(int from, Inbox& inbox) {
  if (!inbox.partial) {
    const PartHeader* part = next_part(from);
    if (part == nullptr) {
      return false;
    }
    inbox.partial.emplace(
        Kept{part->tag, std::vector<std::byte>(part->message_bytes)});
  }
  Kept& message = *inbox.partial;
  const bool moved = read_parts(
      from, message.bytes.data(), message.bytes.size(), message.done);
  if (moved && message.done == message.bytes.size()) {
    inbox.kept.push_back(std::move(message));
    inbox.partial.reset();
    peers_.ring(peers_.rank()); // another thread may wait for the channel
  }
  return moved;
}

bool Mailbox::keep_all() {
  bool moved = false;
  for (int from = 0; from < peers_.size(); ++from) {
    Inbox& inbox = inboxes_[static_cast<size_t>(from)];
    const std::lock_guard lock(inbox.mutex);
    if (from != peers_.rank() && inbox.owner == nullptr) {
      moved = keep(from, inbox) || moved;
    }
  }
  return moved;
}

bool Mailbox::receive(Transfer& transfer, int from) {
  Inbox& inbox = inboxes_[static_cast<size_t>(from)];
  {
    const std::lock_guard lock(inbox.mutex);
    if (inbox.owner != nullptr && inbox.owner != &transfer) {
      return false;
    }
    if (!transfer.begun) {
      if (receive_kept(transfer, from, inbox)) {
        return true;
      }
      const PartHeader* part = next_part(from);
      if (inbox.partial || (part != nullptr && part->tag != transfer.tag)) {
        return keep(from, inbox);
      }
      if (part == nullptr) {
        return false;
      }
      check_size(transfer, from, part->message_bytes);
      inbox.owner = &transfer;
      transfer.begun = true;
      transfer.peer = from;
    }
  }
  const bool moved =
      read_parts(from, transfer.data, transfer.size, transfer.done);
  transfer.finished = moved && transfer.done == transfer.size;
  if (transfer.finished) {
    drop(transfer, nullptr);
  }
  return moved;
}

void Mailbox::check_size(const Transfer& transfer, int from, size_t found) {
  if (found != transfer.size) {
    C10_THROW_ERROR(
        DistBackendError,
        c10::str(
            "rank ",
            from,
            " has sent ",
            found,
            " bytes with tag ",
            transfer.tag,
            ", but this rank receives ",
            transfer.size));
  }
}

void Mailbox::drop(const Transfer& transfer, const Transfer* next) {
  const auto drop_from = [&](auto& box) {
    const std::lock_guard lock(box.mutex);
    if (box.owner != &transfer) {
      return;
    }
    box.owner = next;
    peers_.ring(peers_.rank());
  };
  if (!transfer.begun) {
    return;
  }
  const auto peer = static_cast<size_t>(transfer.peer);
  if (transfer.kind == PeerOp::Kind::kSend) {
    drop_from(outboxes_[peer]);
  } else {
    drop_from(inboxes_[peer]);
  }
}

bool Mailbox::advance(Transfer& transfer) {
  if (transfer.kind == PeerOp::Kind::kSend) {
    return send(transfer);
  }
  if (transfer.peer >= 0) {
    return receive(transfer, transfer.peer);
  }
  for (int from = 0; from < peers_.size(); ++from) {
    if (from != peers_.rank() && receive(transfer, from)) {
      return true;
    }
  }
  return false;
}

bool Mailbox::advance_all(std::vector<Transfer>& transfers) {
  bool moved = false;
  for (size_t i = 0; i < transfers.size(); ++i) {
    Transfer& each = transfers[i];
    // Transfers with the same peer and tag must keep their order.
    const auto same = [&](const Transfer& other) {
      return !other.finished && other.kind == each.kind &&
          other.tag == each.tag && other.peer == each.peer;
    };
    const auto end = transfers.begin() + static_cast<std::ptrdiff_t>(i);
    if (!each.finished && std::none_of(transfers.begin(), end, same)) {
      moved = advance(each) || moved;
    }
  }
  return moved;
}

void Mailbox::check(
    const std::vector<Transfer>& transfers,
    const Deadline& deadline) const {
  std::vector<bool> needed(static_cast<size_t>(peers_.size()));
  for (const Transfer& each : transfers) {
    if (each.finished) {
      continue;
    }
    if (each.peer >= 0) {
      needed[static_cast<size_t>(each.peer)] = true;
      continue;
    }
    // If a rank has left, others can still send; if a rank was lost, they
    // cannot.
    bool all_left = true;
    for (int other = 0; other < peers_.size(); ++other) {
      all_left = all_left && (other == peers_.rank() || peers_.has_left(other));
    }
    for (int other = 0; other < peers_.size(); ++other) {
      needed[static_cast<size_t>(other)] = needed[static_cast<size_t>(other)] ||
          (other != peers_.rank() && (all_left || !peers_.has_left(other)));
    }
  }
  peers_.check([&](int other) {
    return needed[static_cast<size_t>(other)] && next_part(other) == nullptr;
  });
  if (Clock::now() >= deadline.end) {
    std::vector<int> late;
    for (int other = 0; other < peers_.size(); ++other) {
      if (needed[static_cast<size_t>(other)]) {
        late.push_back(other);
      }
    }
    peers_.fail_late(late, deadline);
  }
}

void Mailbox::attempt(std::vector<Transfer>& transfers) {
  // A single part holds the whole message, so the transfer is done or not
  // begun.
  static_assert(kMostAttempted <= Segment::kPartBytes);
  Transfer& only = transfers.front();
  const bool finished = patience_.spin([&] {
    advance_all(transfers);
    return only.finished;
  });
  if (!finished) {
    drop(only, nullptr);
    throw NotYet{};
  }
}

int Mailbox::exchange(
    const std::vector<Message>& messages,
    const Deadline& deadline) {
  std::vector<Transfer> transfers;
  for (const Message& each : messages) {
    transfers.push_back(
        {each.kind,
         each.kind == PeerOp::Kind::kRecvAny ? -1 : each.peer,
         each.tag,
         each.bytes.data,
         each.bytes.size});
  }
  const auto finished = [&] {
    return std::all_of(
        transfers.begin(), transfers.end(), [](const Transfer& each) {
          return each.finished;
        });
  };
  const auto sends = [&] {
    return std::any_of(
        transfers.begin(), transfers.end(), [](const Transfer& each) {
          return each.kind == PeerOp::Kind::kSend && !each.finished;
        });
  };
  try {
    if (Attempt::runs_here()) {
      attempt(transfers);
    }
    auto moved_at = Clock::now();
    auto checked_at = moved_at;
    // All ranks may be sending and receive only afterwards.
    bool keeps = false;
    while (true) {
      const uint32_t heard = peers_.bell();
      if (advance_all(transfers)) {
        moved_at = Clock::now();
        continue;
      }
      if (finished()) {
        break;
      }
      // After that the other ranks wait, as for any receive, because memory is
      // limited.
      const bool kept = keeps && sends() && keep_all();
      if (!kept && !peers_.spin([&] { return peers_.bell() != heard; })) {
        peers_.sleep(heard, kPatience);
      }
      const auto now = Clock::now();
      if (now - checked_at < kPatience) {
        continue;
      }
      checked_at = now;
      check(transfers, deadline);
      keeps = keeps || (now - moved_at >= kPatience && sends());
    }
  } catch (const NotYet&) {
    throw;
  } catch (...) {
    for (const Transfer& each : transfers) {
      drop(each, &kNobody);
    }
    throw;
  }
  int source = -1;
  for (const Transfer& each : transfers) {
    if (each.kind == PeerOp::Kind::kRecvAny) {
      source = each.peer;
    }
  }
  return source;
}

} // namespace openreg::distributed
