// SPDX-License-Identifier: BSD-3-Clause
// Events: points in a stream's order that others can wait for.
#pragma once

#include "base/device_state.h"
#include "base/error.h"
#include "ipc/event.h"
#include "ipc/handle.h"

#include <openreg/openreg.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>

namespace openreg {

class Capture;
class Stream;

/// One record of an event. Each record creates a new point, so waits for an
/// older record are not delayed.
class Point {
 public:
  using Clock = Deadline::Clock;

  explicit Point(const Stream* stream) : stream_(stream) {}
  Point(const Point&) = delete;
  Point& operator=(const Point&) = delete;
  virtual ~Point() = default;

  /// The stream of the record; null if another process recorded it.
  const Stream* stream() const noexcept {
    return stream_;
  }

  /// Sets the point's place in its stream, the command with number `position`,
  /// before others see it. Event and stream then always agree on completion.
  void place(
      const std::atomic<std::uint64_t>& completed,
      std::uint64_t position) noexcept {
    completed_ = &completed;
    position_ = position;
  }
  /// Notes that the work before the point failed or was dropped. Waits for the
  /// point then fail with that error. Called before the point is reached.
  virtual void fail(const Error& error) {
    failure_ = std::make_shared<const Error>(error);
  }
  /// The failure of the work before the point, or null; known once the point is
  /// reached.
  virtual std::shared_ptr<const Error> failure() const {
    return failure_;
  }
  /// Throws that failure, if there is one.
  void check_work() const;
  /// Notes the time, before the command is completed.
  virtual void stamp() {}
  /// Reaches the point, if it is not placed, and wakes waiting threads.
  virtual void reach() = 0;
  bool reached() const noexcept {
    return (completed_ != nullptr && *completed_ >= position_) || was_reached();
  }
  /// Throws orErrorUnknown if the process that could reach it has ended.
  virtual void check() const = 0;
  /// Returns false on a timeout. Throws as check().
  virtual bool wait_until(Clock::time_point time) = 0;
  /// Throws orErrorTimeout, and as check().
  void wait(const Deadline& deadline);
  /// The capture of the record; null for an ordinary record.
  virtual Capture* capture() const noexcept {
    return nullptr;
  }
  /// The time at which the point was reached, for events with timing.
  virtual Clock::time_point time() const noexcept {
    return {};
  }

 private:
  virtual bool was_reached() const noexcept = 0;

  const Stream* const stream_;
  std::shared_ptr<const Error> failure_;
  const std::atomic<std::uint64_t>* completed_ = nullptr; // of the stream
  std::uint64_t position_ = 0;
};

/// A record of an event that is private to this process.
class LocalPoint final : public Point {
 public:
  explicit LocalPoint(const Stream& stream) : Point(&stream) {}

  void stamp() override {
    time_ = Clock::now();
  }
  void reach() override;
  void check() const override {}
  bool wait_until(Clock::time_point time) override;
  Clock::time_point time() const noexcept override {
    return time_;
  }

 private:
  bool was_reached() const noexcept override {
    return reached_.load(std::memory_order_acquire);
  }

  std::atomic<bool> reached_{false};
  Clock::time_point time_;
  std::mutex mutex_;
  std::condition_variable condition_;
};

/// A record of an event that other processes share.
class SharedPoint final : public Point {
 public:
  /// A new record on a stream of this process.
  SharedPoint(std::shared_ptr<ipc::SharedEvent> event, const Stream& stream)
      : Point(&stream), event_(std::move(event)), ticket_(event_->take()) {}
  /// A record by another process, or by an earlier event of this process.
  SharedPoint(
      std::shared_ptr<ipc::SharedEvent> event,
      ipc::SharedEvent::Ticket ticket)
      : Point(nullptr), event_(std::move(event)), ticket_(ticket) {}
  ~SharedPoint() override;

  ipc::SharedEvent::Ticket ticket() const noexcept {
    return ticket_;
  }
  void fail(const Error& error) override;
  std::shared_ptr<const Error> failure() const override;
  void stamp()
      override; // other processes see it reached before the stream continues
  void reach() override;
  void check() const override {
    event_->check(ticket_);
  }
  bool wait_until(Clock::time_point time) override;

 private:
  /// In the stream's own process the stream decides, as for other events.
  bool was_reached() const noexcept override {
    return stream() != nullptr ? reached_.load() : event_->reached(ticket_);
  }

  const std::shared_ptr<ipc::SharedEvent> event_;
  const ipc::SharedEvent::Ticket ticket_;
  std::atomic<bool> stamped_{false};
  std::atomic<bool> reached_{false};
};

class Event {
 public:
  enum class Kind {
    kTimed,
    kUntimed,
    kShared // with other processes, and untimed
  };

  /// Creates a record for `stream`, which becomes the last one.
  std::shared_ptr<Point> new_point(const Stream& stream) const;
  /// Throws orErrorInvalidHandle if `handle`, which named this event, was
  /// destroyed: the object may be another event by now.
  void record(std::shared_ptr<Point> point, orEvent_t handle);
  /// The last record, or null.
  std::shared_ptr<Point> last() const;

  /// Initializes a new or recycled event. Throws orErrorMemoryAllocation.
  void start(Kind kind);
  /// Initializes it as the event of another process.
  void start(const ipc::File& file);
  /// Releases its resources.
  void end();
  bool timing() const noexcept {
    return kind_ == Kind::kTimed;
  }
  bool is_shared() const noexcept {
    return kind_ == Kind::kShared;
  }
  /// Throws orErrorInvalidHandle unless this process created it as
  /// interprocess.
  orIpcEventHandle_t handle() const;

 private:
  std::shared_ptr<ipc::SharedEvent> shared() const;

  std::atomic<Kind> kind_{Kind::kTimed};
  mutable std::mutex mutex_;
  std::shared_ptr<Point> last_; // the last record of this process
  std::shared_ptr<ipc::SharedEvent> shared_;
  ipc::File file_; // of the shared state; none if another process made it
};

/// A handle of a new event.
orEvent_t make_event(Event::Kind kind);
/// A handle of the event whose shared state is in `file`.
orEvent_t open_event(const ipc::File& file);
Event& event_of(orEvent_t event);
void destroy_event(orEvent_t event);
std::size_t live_event_count();

} // namespace openreg
