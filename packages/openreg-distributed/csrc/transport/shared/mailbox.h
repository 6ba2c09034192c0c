// SPDX-License-Identifier: BSD-3-Clause
// Messages between two ranks, in the order in which they are sent, but for
// their tags.
#pragma once

#include "transport/shared/peers.h"

#include <deque>
#include <mutex>
#include <optional>
#include <vector>

namespace openreg::distributed {

class Mailbox {
 public:
  explicit Mailbox(Peers& peers);

  /// As Transport::exchange().
  int exchange(const std::vector<Message>& messages, const Deadline& deadline);

 private:
  struct Transfer {
    PeerOp::Kind kind;
    int peer; // of a receive from any rank: -1 until it has begun
    int tag;
    std::byte* data;
    size_t size;
    size_t done = 0; // bytes
    bool begun = false;
    bool finished = false;
  };
  /// Owns channels in which a message has failed: what follows may be its rest.
  static const Transfer kNobody;

  // What came before anybody asked for its tag.
  struct Kept {
    int64_t tag;
    std::vector<std::byte> bytes;
    size_t done = 0;
  };

  // Several threads can send to one rank, or receive from it: one at a time has
  // the channel, for a whole message.
  struct Outbox {
    std::mutex mutex;
    const Transfer* owner = nullptr;
  };
  struct Inbox {
    std::mutex mutex;
    const Transfer* owner = nullptr;
    std::optional<Kept> partial;
    std::deque<Kept> kept;
  };

  // These do what can be done at once, and return whether that was anything.
  bool advance(Transfer& transfer);
  bool send(Transfer& transfer);
  bool receive(Transfer& transfer, int from);
  bool receive_kept(Transfer& transfer, int from, Inbox& inbox);
  bool keep(int from, Inbox& inbox);
  /// Takes what the ranks have sent, though nobody has asked for it yet.
  bool keep_all();

  bool read_parts(int from, std::byte* data, size_t size, size_t& done);
  const PartHeader* next_part(int from) const;
  static void check_size(const Transfer& transfer, int from, size_t found);
  /// Leaves the channel to `next`, or to others if that is null.
  void drop(const Transfer& transfer, const Transfer* next);
  bool advance_all(std::vector<Transfer>& transfers);
  /// Throws NotYet, with nothing done, if that is not all in a moment.
  void attempt(std::vector<Transfer>& transfers);
  void check(const std::vector<Transfer>& transfers, const Deadline& deadline)
      const;

  Peers& peers_;
  Patience patience_; // of attempts
  std::vector<Outbox> outboxes_;
  std::vector<Inbox> inboxes_;
};

} // namespace openreg::distributed
