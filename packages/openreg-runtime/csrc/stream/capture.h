// SPDX-License-Identifier: BSD-3-Clause
// Captures: calls on a captured stream build a graph instead of running.
//
// Lock order: a stream before its capture.
#pragma once

#include "base/device_state.h"
#include "base/error.h"
#include "stream/event.h"
#include "stream/graph.h"

#include <openreg/openreg.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace openreg {

class Stream;

/// For each branch, the number of steps that precede a point of the graph.
using Ancestors = std::vector<std::size_t>;

class Capture : public std::enable_shared_from_this<Capture> {
 public:
  /// Begins a capture on a stream, its first branch.
  static std::shared_ptr<Capture> begin(
      const Stream& stream,
      DeviceState::Epoch epoch,
      orStreamCaptureMode mode);

  std::uint64_t id() const noexcept {
    return id_;
  }
  /// Whether the capture has ended.
  bool ended() const noexcept {
    return state_.load(std::memory_order_acquire) == State::kEnded;
  }
  bool invalid() const noexcept {
    return state_.load(std::memory_order_acquire) == State::kInvalid;
  }
  const Stream* origin() const noexcept {
    return origin_;
  }

  // The following functions throw orErrorStreamCaptureInvalidated if the
  // capture has failed.
  void add(std::size_t branch, Graph::Node&& node);
  std::shared_ptr<Point> record(std::size_t branch, const Stream& stream);
  /// Makes a branch wait for a point. Throws orErrorStreamCaptureMerge, and
  /// orErrorStreamCaptureIsolation.
  void wait(std::size_t branch, const Point& point);
  /// Adds a stream that waits for a record of this capture as a branch.
  std::size_t
  join(const Stream& stream, DeviceState::Epoch epoch, const Point& point);

  /// Invalidates the capture and throws.
  [[noreturn]] void refuse(orError_t code, const std::string& why);
  /// Invalidates the capture.
  void invalidate(const std::string& why);

  /// Ends the capture. Throws as orStreamEndCapture().
  std::shared_ptr<const Graph> end(const Stream& stream);

  /// Throws orErrorStreamCaptureUnsupported and invalidates the captures if
  /// they forbid the calling thread to wait for a whole device.
  static void check_may_wait(int device);

  Capture(const Stream& origin, orStreamCaptureMode mode);

 private:
  enum class State { kActive, kInvalid, kEnded };

  void check_active_locked() const;
  bool forbids_waiting_for(int device);
  void see(std::size_t branch, const Ancestors& others);

  const std::uint64_t id_;
  const Stream* const origin_;
  const orStreamCaptureMode mode_;
  const std::thread::id thread_ = std::this_thread::get_id();
  std::mutex mutex_;
  std::atomic<State> state_{State::kActive};
  std::string why_; // it failed
  std::shared_ptr<Graph> graph_ = std::make_shared<Graph>();
  std::vector<Ancestors> seen_; // by branch
};

/// A record on a captured stream. It only orders the graph.
class CapturedPoint final : public Point {
 public:
  CapturedPoint(
      const Stream* stream,
      std::shared_ptr<Capture> capture,
      std::size_t mark,
      Ancestors ancestors)
      : Point(stream),
        capture_(std::move(capture)),
        mark_(mark),
        ancestors_(std::move(ancestors)) {}

  void reach() override {}
  void check() const override {}
  bool wait_until(Clock::time_point) override {
    return true;
  }
  Capture* capture() const noexcept override {
    return capture_.get();
  }
  std::size_t mark() const noexcept {
    return mark_;
  }
  const Ancestors& ancestors() const noexcept {
    return ancestors_;
  }

 private:
  bool was_reached() const noexcept override {
    return false;
  }

  const std::shared_ptr<Capture> capture_;
  const std::size_t mark_;
  const Ancestors ancestors_;
};

/// Throws orErrorCapturedEvent for a record of a capture, and invalidates the
/// capture.
void check_not_captured(const Point& point);

} // namespace openreg
