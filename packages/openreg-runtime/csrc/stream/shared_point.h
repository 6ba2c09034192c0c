// SPDX-License-Identifier: BSD-3-Clause
// A record of an event that processes share.
#pragma once

#include "ipc/event.h"
#include "stream/event.h"

#include <atomic>
#include <memory>
#include <utility>

namespace openreg {

class SharedPoint final : public Point {
 public:
  /// A new record on a stream of this process.
  SharedPoint(std::shared_ptr<ipc::SharedEvent> event, const Stream& stream)
      : Point(&stream), event_(std::move(event)), ticket_(event_->take()) {}
  /// A record that another process, or an earlier event of this one, has made.
  SharedPoint(
      std::shared_ptr<ipc::SharedEvent> event,
      ipc::SharedEvent::Ticket ticket)
      : Point(nullptr), event_(std::move(event)), ticket_(ticket) {}
  ~SharedPoint() override;

  ipc::SharedEvent::Ticket ticket() const noexcept {
    return ticket_;
  }
  void stamp()
      override; // other processes see it reached before the stream goes on
  void reach() override;
  void check() const override {
    event_->check(ticket_);
  }
  bool wait_until(Clock::time_point time) override;

 private:
  /// In the process of the stream the stream decides, as for other events.
  bool was_reached() const noexcept override {
    return stream() != nullptr ? reached_.load() : event_->reached(ticket_);
  }

  const std::shared_ptr<ipc::SharedEvent> event_;
  const ipc::SharedEvent::Ticket ticket_;
  std::atomic<bool> stamped_{false};
  std::atomic<bool> reached_{false};
};

} // namespace openreg
