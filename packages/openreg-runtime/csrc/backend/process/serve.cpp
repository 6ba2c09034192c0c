// SPDX-License-Identifier: BSD-3-Clause
// The device side of lanes: the memory, and one thread per lane.
#include "backend/process/serve.h"

#include "activity/recorder.h"
#include "backend/executor.h"
#include "backend/process/frame.h"
#include "backend/process/packet.h"
#include "base/error.h"
#include "platform/mapping.h"
#include "platform/sharing.h"

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

namespace openreg {
namespace {

/// The device's memory. Only this process has its file.
class Memory {
 public:
  /// Reserves the addresses of the other devices around its own, so that
  /// nothing is mapped there.
  explicit Memory(orMemoryView& view)
      : own_(reinterpret_cast<std::uintptr_t>(view.own)), size_(view.size) {
    check(
        platform::create_memory_file("openreg-device", size_, 0, file_),
        "the file");
    auto* begin = static_cast<std::byte*>(view.begin);
    const auto all =
        static_cast<std::size_t>(static_cast<std::byte*>(view.end) - begin);
    std::byte* reserved = nullptr;
    check(platform::reserve(all, nullptr, reserved), "reserving addresses");
    view.distance = reserved - begin;
    kernel_ = static_cast<std::byte*>(view.own) + view.distance;
    check(
        platform::map_reserved(
            kernel_, size_, file_, 0, platform::Access::kReadWrite),
        "mapping");
  }

  /// Returns the local address of a device address. Throws
  /// orErrorIllegalAddress.
  std::byte* at(std::uint64_t address, std::uint64_t count) const {
    if (address < own_ || address - own_ > size_ ||
        count > size_ - (address - own_)) {
      throw Failure(
          orErrorIllegalAddress,
          std::to_string(count) + " bytes at " + std::to_string(address) +
              " are not device memory");
    }
    return kernel_ + (address - own_);
  }
  void release(std::uint64_t offset, std::uint64_t count) const {
    if (offset > size_ || count > size_ - offset ||
        !platform::release_pages(file_, offset, count)) {
      throw Failure(
          orErrorInvalidValue,
          std::to_string(count) + " bytes at offset " + std::to_string(offset) +
              " cannot be released");
    }
  }

 private:
  static void check(platform::Result result, const char* what) {
    if (!result) {
      throw Failure(
          orErrorMemoryAllocation,
          std::string(what) +
              " of the device's memory failed: " + result.text());
    }
  }

  const std::uint64_t own_;
  const std::size_t size_;
  platform::File file_;
  std::byte* kernel_ = nullptr;
};

/// The host. When it ends, this process is killed. A lost wake-up, which only a
/// host that corrupts the shared memory can cause, costs a second.
class Host final : public Peer {
 public:
  void check() override {}
  std::chrono::nanoseconds check_every() const noexcept override {
    return std::chrono::seconds(1);
  }
};

/// One lane, served by one thread until the process ends. If the lane's memory
/// is corrupted, no reply is possible: the process ends, and the host reports a
/// lost device.
class Server {
 public:
  Server(const Memory& memory, LaneMemory& lane)
      : memory_(memory),
        commands_(lane.commands, lane.command_bytes, LaneMemory::kCapacity),
        replies_(lane.replies, lane.reply_bytes, LaneMemory::kCapacity) {}

  [[noreturn]] void serve() noexcept {
    for (;;) {
      CommandFrame command{};
      commands_.read(&command, sizeof(command), host_);
      replied_ = false;
      started_ = command.measured != 0 ? activity::now() : 0;
      to_skip_ = has_bytes(command) ? command.size : 0;
      const bool drops = command.follows != 0 && failed_;
      failed_ = false;
      try {
        if (drops) {
          throw Failure(orErrorLaunchFailure, "an earlier command failed");
        }
        run(command);
        if (!replied_) {
          reply(orSuccess, nullptr, 0);
        }
      } catch (const Failure& failure) {
        fail(failure.error().code, failure.what());
      } catch (const std::exception& exception) {
        fail(orErrorLaunchFailure, text_of(exception));
      } catch (...) {
        fail(
            orErrorLaunchFailure,
            "a kernel threw an exception of an unknown type");
      }
    }
  }

 private:
  static bool has_bytes(const CommandFrame& command) {
    return command.kind == CommandKind::kMessage ||
        command.kind == CommandKind::kWrite;
  }

  void read(void* to, std::size_t size) {
    commands_.read(to, size, host_);
    to_skip_ -= size;
  }
  void reply(orError_t error, const void* data, std::size_t size) {
    const ReplyFrame frame{
        static_cast<std::uint32_t>(error),
        0,
        size,
        started_,
        started_ != 0 ? activity::now() : 0};
    replied_ = true;
    replies_.write_some(&frame, 0); // checks the state
    replies_.write(&frame, sizeof(frame), host_);
    replies_.write(data, size, host_);
    replies_.publish();
  }
  void fail(orError_t error, const char* text) {
    failed_ = true;
    std::vector<std::byte> rest(std::min<std::uint64_t>(to_skip_, 1 << 16));
    while (to_skip_ > 0) {
      read(rest.data(), std::min<std::uint64_t>(to_skip_, rest.size()));
    }
    if (replied_) {
      std::abort(); // a reply and then a failure: the lane is broken
    }
    reply(error, text, std::min<std::size_t>(std::strlen(text), kMostText));
  }

  void run(const CommandFrame& command) {
    switch (command.kind) {
      case CommandKind::kMessage:
        run_message(command);
        return;
      case CommandKind::kWrite: {
        std::byte* to = memory_.at(command.address, command.size);
        read(to, command.size);
        return;
      }
      case CommandKind::kRead:
        reply(
            orSuccess, memory_.at(command.address, command.size), command.size);
        return;
      case CommandKind::kCopy:
        std::memmove(
            memory_.at(command.address, command.size),
            memory_.at(command.source, command.size),
            command.size);
        return;
      case CommandKind::kFill:
        std::memset(
            memory_.at(command.address, command.size),
            static_cast<unsigned char>(command.value),
            command.size);
        return;
      case CommandKind::kRelease:
        memory_.release(command.address, command.size);
        return;
    }
    throw Failure(orErrorInvalidValue, "unknown command kind");
  }

  void run_message(const CommandFrame& command) {
    if (command.size > kMostMessageBytes) {
      throw Failure(orErrorInvalidValue, "a message is too long");
    }
    constexpr std::size_t kKept = std::size_t{1} << 20;
    if (message_.capacity() > kKept) {
      message_ = {};
    }
    message_.resize(command.size); // a copy: the host could change its bytes
    read(message_.data(), message_.size());
    const int has_failed = executor().execute(
        message_.data(),
        message_.size(),
        [](void* self, const void* data, std::size_t size) {
          static_cast<Server*>(self)->reply(orSuccess, data, size);
        },
        this);
    failed_ = has_failed != 0;
  }

  const Memory& memory_;
  PipeReader commands_;
  PipeWriter replies_;
  Host host_;
  std::vector<std::byte> message_;
  std::uint64_t to_skip_ = 0; // bytes of the command that nobody read
  bool replied_ = false;
  bool failed_ = false;       // the last command did
  std::uint64_t started_ = 0; // 0: the command is not measured
};

LaneMemory* map_lane(const platform::File& file) {
  std::uint64_t size = 0;
  std::byte* mapped = nullptr;
  // macOS rounds sizes up to pages.
  if (!platform::size_of(file, size) || size < sizeof(LaneMemory) ||
      !platform::map(file, 0, sizeof(LaneMemory), /*inherited=*/true, mapped)) {
    return nullptr;
  }
  return reinterpret_cast<LaneMemory*>(mapped);
}

/// The socket belongs to the caller of orServeDevice().
struct BorrowedChannel {
  explicit BorrowedChannel(int socket) : channel(socket) {}
  BorrowedChannel(const BorrowedChannel&) = delete;
  BorrowedChannel& operator=(const BorrowedChannel&) = delete;
  ~BorrowedChannel() {
    channel.release();
  }
  platform::Channel channel;
};

} // namespace

void serve_device(int socket, orMemoryView view, orStartExecutor_t start) {
  // Other processes of the same user cannot read the memory.
  if (const auto forbidden = platform::forbid_inspection(); !forbidden) {
    throw Failure(
        orErrorUnknown,
        "cannot protect the device memory from other processes: " +
            forbidden.text());
  }
  static Memory* memory = new Memory(view);
  if (start != nullptr) {
    start(&view);
  }
  const BorrowedChannel borrowed(socket);
  while (const auto packet = borrowed.channel.receive()) {
    if (packet->text != "lane" || !packet->file) {
      throw Failure(orErrorInvalidValue, "unknown packet");
    }
    LaneMemory* lane = map_lane(packet->file);
    if (lane == nullptr) {
      throw Failure(orErrorInvalidValue, "a lane has no shared memory");
    }
    std::thread([lane] { Server(*memory, *lane).serve(); }).detach();
  }
}

} // namespace openreg
