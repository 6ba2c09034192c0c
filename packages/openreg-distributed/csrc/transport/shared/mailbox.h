// SPDX-License-Identifier: BSD-3-Clause
// Messages between two ranks. Messages with the same tag keep their order.
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

  /// See Transport::exchange().
  int exchange(const std::vector<Message>& messages, const Deadline& deadline);

 private:
  struct Transfer {
    PeerOp::Kind kind;
    int peer; // -1: a receive from any rank that has not begun
    int tag;
    std::byte* data;
    size_t size;
    size_t done = 0; // bytes
    bool begun = false;
    bool finished = false;
  };
  /// Owns channels in which a message has failed, because later parts may
  /// belong to it.
  static const Transfer kNobody;

  // A message that arrived before its receive.
  struct Kept {
    int64_t tag;
    std::vector<std::byte> bytes;
    size_t done = 0;
  };

  // Several threads can send to or receive from one rank. One at a time owns
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

  // The following functions make progress without waiting, and return whether
  // there was any.
  bool advance(Transfer& transfer);
  bool send(Transfer& transfer);
  bool receive(Transfer& transfer, int from);
  bool receive_kept(Transfer& transfer, int from, Inbox& inbox);
  bool keep(int from, Inbox& inbox);
  /// Stores incoming messages that have no receive yet.
  bool keep_all();

  bool read_parts(int from, std::byte* data, size_t size, size_t& done);
  const PartHeader* next_part(int from) const;
  static void check_size(const Transfer& transfer, int from, size_t found);
  /// Passes the channel to `next`, or frees it if `next` is null.
  void drop(const Transfer& transfer, const Transfer* next);
  bool advance_all(std::vector<Transfer>& transfers);
  /// Throws NotYet without any effect if it cannot finish immediately.
  void attempt(std::vector<Transfer>& transfers);
  void check(const std::vector<Transfer>& transfers, const Deadline& deadline)
      const;

  Peers& peers_;
  Patience patience_; // of attempts
  std::vector<Outbox> outboxes_;
  std::vector<Inbox> inboxes_;
};

} // namespace openreg::distributed
