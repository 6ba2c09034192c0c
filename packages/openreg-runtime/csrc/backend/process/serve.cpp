// SPDX-License-Identifier: BSD-3-Clause
// The device side of lanes: the memory, and one thread per lane.
#include "backend/process/serve.h"

#include "activity/recorder.h"
#include "backend/executor.h"
#include "backend/process/frame.h"
#include "backend/process/packet.h"
#include "base/error.h"

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>
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
    file_ = memfd_create("openreg-device", MFD_CLOEXEC);
    if (file_ < 0 || ftruncate(file_, static_cast<off_t>(size_)) != 0) {
      fail("the file");
    }
    auto* begin = static_cast<std::byte*>(view.begin);
    const auto all =
        static_cast<std::size_t>(static_cast<std::byte*>(view.end) - begin);
    constexpr int kReserve = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    void* reserved = mmap(nullptr, all, PROT_NONE, kReserve, -1, 0);
    if (reserved == MAP_FAILED) {
      fail("reserving addresses");
    }
    view.distance = static_cast<std::byte*>(reserved) - begin;
    kernel_ = static_cast<std::byte*>(view.own) + view.distance;
    if (mmap(
            kernel_,
            size_,
            PROT_READ | PROT_WRITE,
            MAP_SHARED | MAP_FIXED | MAP_NORESERVE,
            file_,
            0) == MAP_FAILED) {
      fail("mapping");
    }
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
        fallocate(
            file_,
            FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
            static_cast<off_t>(offset),
            static_cast<off_t>(count)) != 0) {
      throw Failure(
          orErrorInvalidValue,
          std::to_string(count) + " bytes at offset " + std::to_string(offset) +
              " cannot be released");
    }
  }

 private:
  [[noreturn]] static void fail(const char* what) {
    throw Failure(
        orErrorMemoryAllocation,
        std::string(what) +
            " of the device's memory failed: " + std::strerror(errno));
  }

  const std::uint64_t own_;
  const std::size_t size_;
  int file_ = -1;
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

LaneMemory* map_lane(int file) {
  struct stat status{};
  void* mapped = MAP_FAILED;
  if (fstat(file, &status) == 0 &&
      status.st_size == static_cast<off_t>(sizeof(LaneMemory))) {
    mapped = mmap(
        nullptr,
        sizeof(LaneMemory),
        PROT_READ | PROT_WRITE,
        MAP_SHARED,
        file,
        0);
  }
  close(file);
  return mapped == MAP_FAILED ? nullptr : static_cast<LaneMemory*>(mapped);
}

} // namespace

void serve_device(int socket, orMemoryView view, orStartExecutor_t start) {
  // Other processes of the same user cannot read the memory.
  if (prctl(PR_SET_DUMPABLE, 0) != 0) {
    throw Failure(
        orErrorUnknown,
        std::string("cannot protect the device memory from other processes: ") +
            std::strerror(errno));
  }
  static Memory* memory = new Memory(view);
  if (start != nullptr) {
    start(&view);
  }
  while (const auto packet = receive_packet(socket)) {
    if (packet->text != "lane" || packet->file < 0) {
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
