// SPDX-License-Identifier: BSD-3-Clause
// The host side of a device in a separate process.
#include "activity/recorder.h"
#include "backend/backend.h"
#include "backend/process/frame.h"
#include "backend/process/launcher.h"
#include "base/error.h"
#include "base/process.h"
#include "base/system_thread.h"
#include "platform/mapping.h"
#include "settings/config.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <deque>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <utility>
#include <vector>

namespace openreg {
namespace {

// The most commands of a stream that the device has at a time.
constexpr std::size_t kMostBegun = 256;
// The size of the pieces in which a copy between devices passes the host.
constexpr std::size_t kCarried = std::size_t{1} << 20;
// The most bytes of replies that the host stores while the device does not read
// commands.
constexpr std::size_t kMostStashed = std::size_t{256} << 20;
// The most rows sent before a reply is read. Their replies fit into the limit
// above.
constexpr std::size_t kMostRows = std::size_t{8} << 20;
// The wait limit may be shorter than the start of a device or a large operator.
constexpr std::chrono::milliseconds kLeastSilence = std::chrono::seconds(10);
// Waits check more often than this. A longer gap means that this process was
// stopped, and perhaps the device too: it counts as this time.
constexpr std::chrono::seconds kMostBetweenChecks{1};

class ProcessBackend;

/// A lane's shared memory and its file, which is sent to the device.
struct NewLane {
  LaneMemory* memory;
  platform::File file;
};
/// Throws orErrorMemoryAllocation.
NewLane make_lane();

/// The shared memory of a lane and its two ends here.
class Connection final : private Peer, private CommandReporter {
 public:
  explicit Connection(std::shared_ptr<DeviceProcess> process)
      : Connection(std::move(process), make_lane()) {}
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  ~Connection();

  const std::shared_ptr<DeviceProcess>& process() const noexcept {
    return process_;
  }

  /// Sends a command with the bytes that follow it.
  void send(CommandFrame frame, const void* data, std::size_t size);
  /// Reads the reply to the oldest command into `data`. Throws its error.
  void receive(void* data, std::size_t size);
  /// Receives a reply of any size.
  void receive(std::vector<std::byte>& data);

  void set_running(const char* name) noexcept {
    running_name_.store(name, std::memory_order_relaxed);
  }
  /// Sets whether the device reports when the next commands ran.
  void measure(bool measured) noexcept {
    measured_ = measured;
  }
  /// Sets whether the device drops the next commands if the previous one
  /// failed.
  void follow(bool follows) noexcept {
    follows_ = follows;
  }
  /// The reported times of the last answered command.
  Span span() const noexcept {
    return span_;
  }
  /// Sets how long the device may stay silent, in milliseconds, before it is
  /// lost. 0: forever.
  void set_limit(std::uint64_t milliseconds) noexcept {
    limit_ = milliseconds;
    if (limit_ > 0) {
      hear();
    }
  }

 private:
  using Clock = std::chrono::steady_clock;

  /// The device during a wait for room for a command. The device may itself
  /// wait for room for a reply, so this peer reads replies.
  class Reading final : public Peer {
   public:
    explicit Reading(Connection& connection) : connection_(connection) {}
    void check() override {
      connection_.stash_replies();
      connection_.check();
    }
    /// Replies do not wake this wait, so it polls.
    std::chrono::nanoseconds check_every() const noexcept override {
      return std::chrono::milliseconds(1);
    }

   private:
    Connection& connection_;
  };

  Connection(std::shared_ptr<DeviceProcess> process, NewLane lane);

  void check() override;
  const char* running() const noexcept override {
    return running_name_.load(std::memory_order_relaxed);
  }
  void read(void* data, std::size_t size);
  void stash_replies();
  /// Notes that the device has replied or has received a new command.
  void hear() noexcept {
    checked_ = Clock::now();
    silence_ = {};
    moved_ = commands_.position() + replies_.position();
  }
  std::size_t receive_size(std::uint64_t most);
  template <typename Work>
  void transfer(const Work& work);

  std::shared_ptr<DeviceProcess> process_;
  LaneMemory* const memory_;
  PipeWriter commands_;
  PipeReader replies_;
  // Replies that were read to make room for the device.
  std::vector<std::byte> stash_;
  std::size_t stash_read_ = 0;
  std::atomic<const char*> running_name_{nullptr};
  std::uint64_t limit_ = 0;
  bool measured_ = false;
  bool follows_ = false;
  Span span_;
  Clock::time_point checked_;
  Clock::duration silence_{};
  std::uint64_t moved_ = 0; // bytes
};

NewLane make_lane() {
  platform::File file;
  std::byte* mapped = nullptr;
  auto made =
      platform::create_memory_file("openreg-lane", sizeof(LaneMemory), 0, file);
  if (made) {
    made =
        platform::map(file, 0, sizeof(LaneMemory), /*inherited=*/false, mapped);
  }
  if (!made) {
    throw Failure(
        orErrorMemoryAllocation,
        "cannot allocate shared memory for a lane: " + made.text());
  }
  return {reinterpret_cast<LaneMemory*>(mapped), std::move(file)};
}

void unmap_lane(LaneMemory* memory) noexcept {
  platform::unmap(reinterpret_cast<std::byte*>(memory), sizeof(LaneMemory));
}

Connection::Connection(std::shared_ptr<DeviceProcess> process, NewLane lane)
    : process_(std::move(process)),
      memory_(lane.memory),
      commands_(
          memory_->commands,
          memory_->command_bytes,
          LaneMemory::kCapacity),
      replies_(memory_->replies, memory_->reply_bytes, LaneMemory::kCapacity) {
  try {
    process_->attach(lane.file, *this);
  } catch (...) {
    process_->detach(*this);
    unmap_lane(memory_);
    throw;
  }
}

Connection::~Connection() {
  process_->detach(*this);
  unmap_lane(memory_);
}

void Connection::send(CommandFrame frame, const void* data, std::size_t size) {
  process_->check();
  frame.measured = measured_ ? 1 : 0;
  frame.follows = follows_ ? 1 : 0;
  transfer([&] {
    Reading device{*this};
    commands_.write(&frame, sizeof(frame), device);
    commands_.write(data, size, device);
    commands_.publish();
  });
}

/// A truncated or invalid command or reply ends the process, because the start
/// of the next one would be unknown.
template <typename Work>
void Connection::transfer(const Work& work) {
  std::string reason;
  try {
    work();
    return;
  } catch (const std::bad_alloc&) {
    reason = "the program had no memory for what the device sent";
  } catch (const Broken& broken) {
    reason = broken.what();
  }
  end_device_process(*process_, reason, /*expected=*/false);
  process_->check();
}

void Connection::check() {
  process_->check();
  if (limit_ == 0) {
    return;
  }
  if (commands_.position() + replies_.position() != moved_) {
    hear();
    return;
  }
  const auto now = Clock::now();
  silence_ += std::min<Clock::duration>(now - checked_, kMostBetweenChecks);
  checked_ = now;
  const auto most = std::max(std::chrono::milliseconds(limit_), kLeastSilence);
  if (silence_ < most) {
    return;
  }
  end_device_process(
      *process_,
      "it did not answer within " + std::to_string(most.count()) + " ms",
      /*expected=*/false);
  process_->check();
}

void Connection::stash_replies() {
  if (stash_read_ > stash_.size() / 2) {
    stash_.erase(
        stash_.begin(),
        stash_.begin() + static_cast<std::ptrdiff_t>(stash_read_));
    stash_read_ = 0;
  }
  while (const std::size_t count = replies_.available()) {
    const std::size_t end = stash_.size();
    if (count > kMostStashed - std::min(end, kMostStashed)) {
      throw Broken("it sent more replies than the host can hold");
    }
    stash_.resize(end + count);
    stash_.resize(end + replies_.read_some(stash_.data() + end, count));
  }
}

void Connection::read(void* data, std::size_t size) {
  auto* to = static_cast<std::byte*>(data);
  if (!stash_.empty()) [[unlikely]] {
    const std::size_t count = std::min(size, stash_.size() - stash_read_);
    std::memcpy(to, stash_.data() + stash_read_, count);
    stash_read_ += count;
    to += count;
    size -= count;
    if (stash_read_ == stash_.size()) {
      stash_.clear();
      stash_read_ = 0;
    }
  }
  replies_.read(to, size, *this);
}

/// Returns the size of a reply. Throws the error that a reply describes.
std::size_t Connection::receive_size(std::uint64_t most) {
  ReplyFrame frame{};
  read(&frame, sizeof(frame));
  span_ = {frame.started, frame.ended};
  const bool failed = frame.error != orSuccess;
  if (frame.size > (failed ? kMostText : most)) {
    throw Broken("it sent a reply of " + std::to_string(frame.size) + " bytes");
  }
  if (failed) {
    std::string text(frame.size, '\0');
    read(text.data(), text.size());
    throw Failure(static_cast<orError_t>(frame.error), std::move(text));
  }
  return frame.size;
}

void Connection::receive(void* data, std::size_t size) {
  transfer([&] {
    if (const std::size_t sent = receive_size(size); sent != size) {
      throw Broken(
          "it sent " + std::to_string(sent) + " bytes for " +
          std::to_string(size));
    }
    read(data, size);
  });
}

void Connection::receive(std::vector<std::byte>& data) {
  transfer([&] {
    // Allocates as data arrives: an invalid size must not take memory.
    constexpr std::size_t kPiece = std::size_t{1} << 20;
    const std::size_t size = receive_size(kMostReplyBytes);
    data.clear();
    while (data.size() < size) {
      const std::size_t begin = data.size();
      data.resize(std::min(size, begin + kPiece));
      read(data.data() + begin, data.size() - begin);
    }
  });
}

class ProcessLane final : public Lane {
 public:
  explicit ProcessLane(ProcessBackend& backend) : backend_(backend) {}

  bool queues(const Command& command) const noexcept override;
  void begin(const Command& command) override;
  void finish() override;

 private:
  /// A command that the device has, until its last reply.
  struct Begun {
    const char* name;
    std::size_t replies;
    const Message* message = nullptr;
    std::byte* to = nullptr; // where bytes go that are read
    std::size_t size = 0;    // of each row
    std::size_t pitch = 0;
    std::shared_ptr<Connection> connection;
    std::optional<Pin> dst{};
    std::optional<Pin> src{};
  };
  /// One side of a copy.
  struct Side {
    std::byte* address;
    int device;                             // -1: the host
    std::shared_ptr<DeviceProcess> process; // null for the host
    std::optional<Pin> pin;
  };

  void start(const Message& message);
  void start(const Launch& launch);
  void start(const Copy& copy);
  void start(const std::unique_ptr<const Copy2D>& rows);
  void start(const Fill& fill);
  void copy(
      Side dst,
      std::size_t dst_pitch,
      Side src,
      std::size_t src_pitch,
      std::size_t width,
      std::size_t height);
  void carry(
      const Side& dst,
      std::size_t dst_pitch,
      const Side& src,
      std::size_t src_pitch,
      std::size_t width,
      std::size_t height);
  Side side(const Place& place, std::size_t count);
  template <typename Work>
  void reach(int device, const Work& work);
  std::shared_ptr<DeviceProcess> process_of(int device);
  const std::shared_ptr<Connection>& connection();
  template <typename Send>
  void push(Begun&& begun, const Send& send);
  void take_reply(const Begun& begun);
  void note_running() noexcept;

  ProcessBackend& backend_;
  std::shared_ptr<Connection> connection_;
  std::deque<Begun> begun_;
  std::vector<std::byte> reply_; // kept for the next one
};

class ProcessBackend final : public Backend {
 public:
  ProcessBackend(
      int device,
      const AddressSpace& memory,
      PinBlock pin_block,
      DeviceState& state)
      : device_(device), memory_(memory), pin_(pin_block), state_(state) {
    backends()[static_cast<std::size_t>(device)] = this;
  }

  static ProcessBackend& of(int device) {
    return *backends().at(static_cast<std::size_t>(device));
  }

  std::unique_ptr<Lane> open_lane() override {
    return std::make_unique<ProcessLane>(*this);
  }
  void release(std::size_t offset, std::size_t size) override;
  void restart() override;

  /// The device process, which is started if it does not run. Throws
  /// orErrorDeviceLost.
  std::shared_ptr<DeviceProcess> process();
  /// Reads the memory of a present or former device process. Throws
  /// orErrorDeviceLost.
  void read(
      const std::shared_ptr<DeviceProcess>& process,
      const std::byte* address,
      void* to,
      std::size_t size);
  void write(
      const std::shared_ptr<DeviceProcess>& process,
      std::byte* address,
      const void* from,
      std::size_t size);
  /// Copies within the device; the ranges may overlap.
  void copy(
      const std::shared_ptr<DeviceProcess>& process,
      std::byte* to,
      const std::byte* from,
      std::size_t size);

  int device() const noexcept {
    return device_;
  }
  const AddressSpace& memory() const noexcept {
    return memory_;
  }
  std::optional<Pin> pin(int device, const Place& place) const {
    return pin_(device, place);
  }

 private:
  using Backends = std::array<ProcessBackend*, kMaxDevices>;
  static Backends& backends() {
    static Backends value{};
    return value;
  }
  Connection& service(const std::shared_ptr<DeviceProcess>& process);

  const int device_;
  const AddressSpace& memory_;
  const PinBlock pin_;
  DeviceState& state_;
  std::mutex mutex_;
  std::shared_ptr<DeviceProcess> process_;
  // For commands that belong to no stream.
  std::mutex service_mutex_;
  std::unique_ptr<Connection> service_;
};

std::shared_ptr<DeviceProcess> ProcessBackend::process() {
  const std::lock_guard lock(mutex_);
  if (process_ == nullptr) {
    state_.check(); // work that a reset drops must not start a process
    process_ = start_device_process(device_, memory_, state_);
  }
  process_->check();
  return process_;
}

void ProcessBackend::restart() {
  std::shared_ptr<DeviceProcess> ended;
  {
    const std::lock_guard lock(mutex_);
    ended = std::exchange(process_, nullptr);
  }
  if (ended != nullptr) {
    end_device_process(*ended, "it was reset", /*expected=*/true);
  }
}

/// The backend's own lane. The caller holds the lock.
Connection& ProcessBackend::service(
    const std::shared_ptr<DeviceProcess>& process) {
  if (service_ == nullptr || service_->process() != process) {
    service_ = std::make_unique<Connection>(process);
  }
  service_->set_limit(state_.wait_timeout());
  return *service_;
}

void ProcessBackend::release(std::size_t offset, std::size_t size) {
  const CancellationDeferred deferred;
  const auto now = [this] {
    const std::lock_guard lock(mutex_);
    return process_;
  }();
  if (now == nullptr || now->is_lost()) {
    return; // the memory went with the process, or there was none
  }
  if (process::exiting()) {
    return;
  }
  const std::lock_guard lock(service_mutex_);
  try {
    Connection& to = service(now);
    to.send({CommandKind::kRelease, 0, offset, 0, size, 0}, nullptr, 0);
    to.receive(nullptr, 0);
  } catch (const Failure& failure) {
    if (failure.error().code != orErrorDeviceLost) {
      throw;
    }
  }
}

std::uint64_t number_of(const std::byte* address) {
  return reinterpret_cast<std::uintptr_t>(address);
}

void ProcessBackend::read(
    const std::shared_ptr<DeviceProcess>& process,
    const std::byte* address,
    void* to,
    std::size_t size) {
  const std::lock_guard lock(service_mutex_);
  Connection& by = service(process);
  by.send({CommandKind::kRead, 0, number_of(address), 0, size, 0}, nullptr, 0);
  by.receive(to, size);
}

void ProcessBackend::write(
    const std::shared_ptr<DeviceProcess>& process,
    std::byte* address,
    const void* from,
    std::size_t size) {
  const std::lock_guard lock(service_mutex_);
  Connection& by = service(process);
  by.send({CommandKind::kWrite, 0, number_of(address), 0, size, 0}, from, size);
  by.receive(nullptr, 0);
}

void ProcessBackend::copy(
    const std::shared_ptr<DeviceProcess>& process,
    std::byte* to,
    const std::byte* from,
    std::size_t size) {
  // In pieces, because other threads need the lane too. Each piece is read
  // before its target is written.
  constexpr std::size_t kPiece = std::size_t{16} << 20;
  const bool backwards = number_of(to) > number_of(from);
  for (std::size_t done = 0; done < size;) {
    const std::size_t count = std::min(kPiece, size - done);
    const std::size_t at = backwards ? size - done - count : done;
    const std::lock_guard lock(service_mutex_);
    Connection& by = service(process);
    by.send(
        {CommandKind::kCopy,
         0,
         number_of(to + at),
         number_of(from + at),
         count,
         0},
        nullptr,
        0);
    by.receive(nullptr, 0);
    done += count;
  }
}

bool ProcessLane::queues(const Command& command) const noexcept {
  if (begun_.size() >= kMostBegun) {
    return false;
  }
  const auto here = [this](const Place& place) {
    return backend_.memory().device_of(place.address) == backend_.device();
  };
  if (const auto* copy = std::get_if<Copy>(&command)) {
    // Host data is sent when the copy begins. Data for the host is read when
    // the copy has finished.
    return here(copy->dst) &&
        (here(copy->src) || backend_.memory().device_of(copy->src.address) < 0);
  }
  if (const auto* fill = std::get_if<Fill>(&command)) {
    return here(fill->dst);
  }
  return std::holds_alternative<Message>(command);
}

void ProcessLane::begin(const Command& command) {
  std::visit([this](const auto& value) { start(value); }, command);
}

void ProcessLane::finish() {
  if (begun_.empty()) {
    return; // a kernel of the host, which is finished when it began
  }
  Begun oldest = std::move(begun_.front());
  begun_.pop_front();
  struct Next { // also if this one failed
    ProcessLane& lane;
    ~Next() {
      lane.note_running();
    }
  } next{*this};
  std::optional<Failure> failure;
  Span span;
  for (std::size_t i = 0; i < oldest.replies; ++i) {
    try {
      if (oldest.message != nullptr) {
        take_reply(oldest);
      } else {
        oldest.connection->receive(
            oldest.to != nullptr ? oldest.to + i * oldest.pitch : nullptr,
            oldest.to != nullptr ? oldest.size : 0);
      }
    } catch (const Failure& each) {
      if (each.error().code == orErrorDeviceLost) {
        throw;
      }
      failure = each;
    }
    const Span each = oldest.connection->span();
    span = {span.started != 0 ? span.started : each.started, each.ended};
  }
  if (oldest.to != nullptr && span.ended != 0) {
    span.ended = activity::now(); // with the bytes of the reply
  }
  set_span(span);
  if (failure) {
    throw Failure(*failure);
  }
}

void ProcessLane::take_reply(const Begun& begun) {
  constexpr std::size_t kKept = std::size_t{1} << 20;
  // The handler of the reply may send another message on this lane.
  auto reply = std::exchange(reply_, {});
  begun.connection->receive(reply);
  begun.message->on_reply(begun.message->args, reply.data(), reply.size());
  if (reply.capacity() <= kKept) {
    reply_ = std::move(reply);
  }
}

/// The connection to the current device process.
const std::shared_ptr<Connection>& ProcessLane::connection() {
  if (connection_ != nullptr && !connection_->process()->is_lost()) {
    return connection_;
  }
  const CancellationDeferred deferred;
  auto now = backend_.process();
  connection_ = std::make_shared<Connection>(std::move(now));
  return connection_;
}

template <typename Send>
void ProcessLane::push(Begun&& begun, const Send& send) {
  begun_.push_back(std::move(begun)); // first: what is sent has a reply
  if (begun_.size() == 1) {
    note_running(); // first: the device may be lost while it is sent
  }
  Connection& to = *begun_.back().connection;
  to.set_limit(limit());
  to.measure(is_measured());
  to.follow(begun_.size() > 1);
  try {
    send(to);
  } catch (...) {
    begun_.pop_back();
    note_running();
    throw;
  }
}

void ProcessLane::note_running() noexcept {
  const char* name = begun_.empty() ? nullptr : begun_.front().name;
  connection_->set_running(name); // for the reason of a loss
  set_running(name);
}

void ProcessLane::start(const Launch& launch) {
  launch.kernel(launch.args); // on the host: it reaches no device memory
}

void ProcessLane::start(const Message& message) {
  push(
      {message.info.name, 1, &message, nullptr, 0, 0, connection()},
      [&](Connection& to) {
        to.send(
            {CommandKind::kMessage, 0, 0, 0, message.size, 0},
            message.data,
            message.size);
      });
}

void ProcessLane::start(const Fill& fill) {
  Side dst = side(fill.dst, fill.count);
  if (dst.device != backend_.device()) {
    const std::vector<unsigned char> bytes(
        std::min(fill.count, kCarried), fill.value);
    for (std::size_t at = 0; at < fill.count; at += bytes.size()) {
      const std::size_t count = std::min(bytes.size(), fill.count - at);
      reach(dst.device, [&](ProcessBackend& device) {
        device.write(dst.process, dst.address + at, bytes.data(), count);
      });
    }
    return;
  }
  Begun begun{
      "a memset", 1, nullptr, nullptr, 0, 0, connection_, std::move(dst.pin)};
  push(std::move(begun), [&](Connection& to) {
    const std::uint64_t target = number_of(dst.address);
    to.send(
        {CommandKind::kFill, fill.value, target, 0, fill.count, 0}, nullptr, 0);
  });
}

void ProcessLane::start(const Copy& each) {
  copy(
      side(each.dst, each.count),
      each.count,
      side(each.src, each.count),
      each.count,
      each.count,
      1);
}

void ProcessLane::start(const std::unique_ptr<const Copy2D>& rows) {
  const Copy2D& each = *rows;
  const auto extent = [&each](std::size_t pitch) {
    return Copy2D::extent(pitch, each.width, each.height);
  };
  copy(
      side(each.dst, extent(each.dst_pitch)),
      each.dst_pitch,
      side(each.src, extent(each.src_pitch)),
      each.src_pitch,
      each.width,
      each.height);
}

void ProcessLane::copy(
    Side dst,
    std::size_t dst_pitch,
    Side src,
    std::size_t src_pitch,
    std::size_t width,
    std::size_t height) {
  const auto is_near = [this](const Side& each) {
    return each.device < 0 || each.device == backend_.device();
  };
  if (dst.device < 0 && src.device < 0) {
    for (std::size_t row = 0; row < height; ++row) {
      std::memmove(
          dst.address + row * dst_pitch, src.address + row * src_pitch, width);
    }
    return;
  }
  // Rows for the host are read one at a time, because their replies could fill
  // the pipe.
  if (!is_near(dst) || !is_near(src) || (dst.device < 0 && height > 1) ||
      height > kMostRows) {
    carry(dst, dst_pitch, src, src_pitch, width, height);
    return;
  }
  std::byte* into = dst.device < 0 ? dst.address : nullptr;
  Begun begun{
      "a copy",
      height,
      nullptr,
      into,
      width,
      width,
      connection_,
      std::move(dst.pin),
      std::move(src.pin)};
  push(std::move(begun), [&](Connection& to) {
    for (std::size_t row = 0; row < height; ++row) {
      if (row == 1) {
        to.follow(true); // a row that fails fails the copy
      }
      const std::uint64_t target = number_of(dst.address + row * dst_pitch);
      const std::byte* from = src.address + row * src_pitch;
      if (src.device < 0) {
        to.send({CommandKind::kWrite, 0, target, 0, width, 0}, from, width);
      } else if (dst.device < 0) {
        to.send(
            {CommandKind::kRead, 0, number_of(from), 0, width, 0}, nullptr, 0);
      } else {
        to.send(
            {CommandKind::kCopy, 0, target, number_of(from), width, 0},
            nullptr,
            0);
      }
    }
  });
}

/// Copies through the host, or within another device, before it returns.
void ProcessLane::carry(
    const Side& dst,
    std::size_t dst_pitch,
    const Side& src,
    std::size_t src_pitch,
    std::size_t width,
    std::size_t height) {
  if (dst.device >= 0 && dst.device == src.device) {
    for (std::size_t row = 0; row < height; ++row) {
      reach(dst.device, [&](ProcessBackend& device) {
        device.copy(
            dst.process,
            dst.address + row * dst_pitch,
            src.address + row * src_pitch,
            width);
      });
    }
    return;
  }
  std::vector<std::byte> piece(std::min(width, kCarried));
  for (std::size_t row = 0; row < height; ++row) {
    for (std::size_t at = 0; at < width; at += piece.size()) {
      const std::size_t count = std::min(piece.size(), width - at);
      std::byte* to = dst.address + row * dst_pitch + at;
      const std::byte* from = src.address + row * src_pitch + at;
      if (src.device >= 0) {
        void* into = dst.device < 0 ? to : piece.data();
        reach(src.device, [&](ProcessBackend& device) {
          device.read(src.process, from, into, count);
        });
        from = piece.data();
      }
      if (dst.device >= 0) {
        reach(dst.device, [&](ProcessBackend& device) {
          device.write(dst.process, to, from, count);
        });
      }
    }
  }
}

/// The enqueuing call has checked the range, but the block may have been freed
/// since then. The pin keeps it alive from now on.
ProcessLane::Side ProcessLane::side(const Place& place, std::size_t count) {
  auto* address = static_cast<std::byte*>(place.address);
  const int device = backend_.memory().device_of(address);
  if (device < 0) {
    return {address, device, nullptr, std::nullopt};
  }
  // The process comes first: after a reset in between the pin fails.
  auto process = device == backend_.device() ? connection()->process()
                                             : process_of(device);
  auto pin = backend_.pin(device, place);
  if (!pin || address + count > pin->block().begin + pin->block().size) {
    throw no_block(address, count, device);
  }
  return {address, device, std::move(process), std::move(pin)};
}

std::shared_ptr<DeviceProcess> ProcessLane::process_of(int device) {
  std::shared_ptr<DeviceProcess> process;
  reach(device, [&](ProcessBackend& backend) { process = backend.process(); });
  return process;
}

/// Runs `work` on a device. The loss of another device does not fail this one.
template <typename Work>
void ProcessLane::reach(int device, const Work& work) {
  try {
    work(ProcessBackend::of(device));
  } catch (const Failure& failure) {
    if (device != backend_.device() &&
        DeviceState::sticks(failure.error().code)) {
      throw Dropped(failure.error());
    }
    throw;
  }
}

} // namespace

std::unique_ptr<Backend> make_process_backend(
    int device,
    const AddressSpace& memory,
    PinBlock pin,
    DeviceState& state) {
  return std::make_unique<ProcessBackend>(device, memory, pin, state);
}

} // namespace openreg
