// SPDX-License-Identifier: BSD-3-Clause
// The calls that a capture accepts and refuses, with CUDA's error texts.
#include "stream/capture.h"

#include "stream/stream.h"

#include <algorithm>
#include <utility>

namespace openreg {
namespace {

/// The captures that have not ended.
struct Captures {
  std::mutex mutex;
  std::vector<std::weak_ptr<Capture>> all;
  std::atomic<std::size_t> count{0}; // at least as many as are live
};

Captures& captures() {
  static auto* value = new Captures;
  return *value;
}

std::uint64_t next_id() {
  static std::atomic<std::uint64_t> last{0};
  return ++last;
}

std::string text(orError_t code, const std::string& why) {
  return std::string(describe(code).text) + ": " + why;
}

} // namespace

Capture::Capture(const Stream& origin, orStreamCaptureMode mode)
    : id_(next_id()), origin_(&origin), mode_(mode) {}

std::shared_ptr<Capture> Capture::begin(
    const Stream& stream,
    DeviceState::Epoch epoch,
    orStreamCaptureMode mode) {
  auto made = std::make_shared<Capture>(stream, mode);
  made->graph_->add_branch(stream.device(), stream.priority(), epoch);
  made->seen_.emplace_back(1);
  Captures& known = captures();
  const std::lock_guard lock(known.mutex);
  std::erase_if(known.all, [](const auto& each) { return each.expired(); });
  known.all.push_back(made);
  known.count = known.all.size();
  return made;
}

void Capture::check_active_locked() const {
  if (state_ == State::kInvalid) {
    throw Failure(
        orErrorStreamCaptureInvalidated,
        text(orErrorStreamCaptureInvalidated, why_));
  }
  if (state_ == State::kEnded) {
    throw Failure(
        orErrorNotPermitted,
        "the capture of the stream was ended by another thread");
  }
}

void Capture::invalidate(const std::string& why) {
  const std::lock_guard lock(mutex_);
  if (state_ == State::kActive) {
    state_ = State::kInvalid;
    why_ = why;
  }
}

void Capture::refuse(orError_t code, const std::string& why) {
  {
    const std::lock_guard lock(mutex_);
    check_active_locked();
  }
  invalidate(why);
  throw Failure(code, text(code, why));
}

void Capture::add(std::size_t branch, Graph::Node&& node) {
  const std::lock_guard lock(mutex_);
  check_active_locked();
  graph_->add(branch, std::move(node));
  ++seen_[branch][branch];
}

std::shared_ptr<Point> Capture::record(
    std::size_t branch,
    const Stream& stream) {
  const std::lock_guard lock(mutex_);
  check_active_locked();
  return std::make_shared<CapturedPoint>(
      &stream, shared_from_this(), graph_->mark(branch), seen_[branch]);
}

void Capture::see(std::size_t branch, const Ancestors& others) {
  Ancestors& own = seen_[branch];
  own.resize(std::max(own.size(), others.size()));
  for (std::size_t i = 0; i < others.size(); ++i) {
    own[i] = std::max(own[i], others[i]);
  }
}

void Capture::wait(std::size_t branch, const Point& point) {
  const auto* captured = dynamic_cast<const CapturedPoint*>(&point);
  if (captured == nullptr) {
    refuse(
        orErrorStreamCaptureIsolation,
        "a captured stream cannot wait for an event that was recorded outside "
        "the capture");
  }
  Capture* other = captured->capture();
  if (other != this) {
    if (other->ended()) {
      refuse(
          orErrorCapturedEvent,
          "a captured stream cannot wait for an event of a capture that has "
          "ended");
    }
    const char* why = "a stream cannot wait for an event of another capture";
    other->invalidate(why);
    refuse(orErrorStreamCaptureMerge, why);
  }
  const std::lock_guard lock(mutex_);
  check_active_locked();
  graph_->join(branch, captured->mark());
  see(branch, captured->ancestors());
}

std::size_t Capture::join(
    const Stream& stream,
    DeviceState::Epoch epoch,
    const Point& point) {
  const auto& captured = dynamic_cast<const CapturedPoint&>(point);
  const std::lock_guard lock(mutex_);
  check_active_locked();
  const std::size_t branch =
      graph_->add_branch(stream.device(), stream.priority(), epoch);
  seen_.emplace_back(branch + 1);
  graph_->join(branch, captured.mark());
  see(branch, captured.ancestors());
  return branch;
}

std::shared_ptr<const Graph> Capture::end(const Stream& stream) {
  if (&stream != origin_) {
    throw Failure(
        orErrorStreamCaptureUnmatched,
        describe(orErrorStreamCaptureUnmatched).text);
  }
  if (mode_ != orStreamCaptureModeRelaxed &&
      std::this_thread::get_id() != thread_) {
    throw Failure(
        orErrorStreamCaptureWrongThread,
        describe(orErrorStreamCaptureWrongThread).text);
  }
  std::shared_ptr<Graph> graph;
  const std::lock_guard lock(mutex_);
  const auto state = state_.exchange(State::kEnded);
  graph.swap(graph_);
  if (state == State::kEnded) {
    throw Failure(orErrorInvalidValue, "stream is not captured");
  }
  if (state == State::kInvalid) {
    throw Failure(
        orErrorStreamCaptureInvalidated,
        text(orErrorStreamCaptureInvalidated, why_));
  }
  for (std::size_t branch = 1; branch < seen_.size(); ++branch) {
    const std::size_t joined =
        branch < seen_[0].size() ? seen_[0][branch] : std::size_t{0};
    if (joined < seen_[branch][branch]) {
      throw Failure(
          orErrorStreamCaptureUnjoined,
          text(
              orErrorStreamCaptureUnjoined,
              "a stream that joined the capture has work that the capturing "
              "stream did not wait for"));
    }
  }
  return graph;
}

bool Capture::forbids_waiting_for(int device) {
  if (mode_ == orStreamCaptureModeRelaxed ||
      (mode_ == orStreamCaptureModeThreadLocal &&
       std::this_thread::get_id() != thread_)) {
    return false;
  }
  const std::lock_guard lock(mutex_);
  return state_ != State::kEnded &&
      std::any_of(
             graph_->branches().begin(),
             graph_->branches().end(),
             [device](const auto& each) { return each.device == device; });
}

void Capture::check_may_wait(int device) {
  Captures& known = captures();
  if (known.count == 0) {
    return;
  }
  std::vector<std::shared_ptr<Capture>> live;
  {
    const std::lock_guard lock(known.mutex);
    for (const auto& each : known.all) {
      if (auto capture = each.lock(); capture && !capture->ended()) {
        live.push_back(std::move(capture));
      }
    }
    if (live.empty()) {
      known.all.clear();
      known.count = 0;
    }
  }
  const std::string why =
      "a call tried to wait for all of device " + std::to_string(device);
  bool forbidden = false;
  for (const auto& capture : live) {
    if (capture->forbids_waiting_for(device)) {
      capture->invalidate(why);
      forbidden = true;
    }
  }
  if (forbidden) {
    throw Failure(
        orErrorStreamCaptureUnsupported,
        text(orErrorStreamCaptureUnsupported, why));
  }
}

void check_not_captured(const Point& point) {
  if (Capture* capture = point.capture()) [[unlikely]] {
    const std::string why =
        "the event was recorded in a capture, where it orders the graph and is "
        "never reached";
    capture->invalidate(why);
    throw Failure(orErrorCapturedEvent, text(orErrorCapturedEvent, why));
  }
}

// ---- of streams

std::shared_ptr<Capture> Stream::capture() {
  if (!captured_.load(std::memory_order_acquire)) {
    return nullptr;
  }
  const std::lock_guard lock(mutex_);
  return capture_locked();
}

std::shared_ptr<Capture> Stream::capture_locked() {
  if (capture_ && capture_->ended()) {
    leave_capture_locked();
  }
  return capture_;
}

void Stream::leave_capture_locked() {
  capture_.reset();
  captured_ = false;
}

void Stream::begin_capture(Epoch epoch, orStreamCaptureMode mode) {
  const std::lock_guard lock(mutex_);
  check_accepts(epoch);
  if (capture_locked()) {
    throw Failure(orErrorInvalidValue, "stream is already being captured");
  }
  capture_ = Capture::begin(*this, epoch, mode);
  branch_ = 0;
  captured_ = true;
}

std::shared_ptr<const Graph> Stream::end_capture() {
  const auto capture = this->capture();
  if (!capture) {
    throw Failure(
        orErrorInvalidValue,
        "stream is not being captured: call orStreamBeginCapture first");
  }
  return capture->end(*this);
}

void Stream::check_not_captured(const char* what) {
  if (!captured_.load(std::memory_order_acquire) || runs_here()) [[likely]] {
    return;
  }
  if (const auto capture = this->capture()) {
    capture->refuse(orErrorStreamCaptureUnsupported, what);
  }
}

/// Returns false if the stream is not captured: then the caller enqueues the
/// node.
bool Stream::add_to_capture(Graph::Node& node, Epoch epoch) {
  if (runs_here()) {
    return false;
  }
  const std::lock_guard lock(mutex_);
  const auto capture = capture_locked();
  if (!capture) {
    return false;
  }
  check_accepts(epoch);
  capture->add(branch_, std::move(node));
  return true;
}

std::shared_ptr<Point> Stream::record_in_capture(Epoch epoch) {
  if (!captured_.load(std::memory_order_acquire) || runs_here()) [[likely]] {
    return nullptr;
  }
  const std::lock_guard lock(mutex_);
  const auto capture = capture_locked();
  if (!capture) {
    return nullptr;
  }
  check_accepts(epoch);
  return capture->record(branch_, *this);
}

/// Returns false if neither the stream nor the point belongs to a capture.
bool Stream::wait_in_capture(const Point& point, Epoch epoch) {
  const bool captured = captured_.load(std::memory_order_acquire);
  Capture* other = point.capture();
  if ((!captured && other == nullptr) || runs_here()) [[likely]] {
    return false;
  }
  const std::lock_guard lock(mutex_);
  check_accepts(epoch);
  if (const auto capture = capture_locked()) {
    capture->wait(branch_, point);
    return true;
  }
  if (other == nullptr) {
    return false;
  }
  if (other->ended()) {
    throw Failure(
        orErrorCapturedEvent,
        text(
            orErrorCapturedEvent,
            "the capture in which the event was recorded has ended"));
  }
  branch_ = other->join(*this, epoch, point);
  capture_ = other->shared_from_this();
  captured_ = true;
  return true;
}

} // namespace openreg
