// SPDX-License-Identifier: BSD-3-Clause
// File descriptors of shared memory. A thread of the owning process passes them
// over a socket that only processes of the same user can open.
#include "platform/sharing.h"

#include "platform/posix/descriptor.h"
#include "platform/posix/own_folder.h"
#include "platform/posix/passing.h"
#include "platform/thread.h"

#include <cerrno>
#include <cstring>
#include <map>
#include <mutex>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <system_error>
#include <thread>
#include <unistd.h>
#if __has_include(<sys/ptrace.h>)
#include <sys/ptrace.h>
#endif

namespace openreg::platform {
namespace {

struct Request {
  std::int32_t number;
  std::int32_t unused;
  FileId id;
};
enum class Reply : char { kFile = 'f', kGone = 'g' };
// An owner that does not answer is stopped.
constexpr timeval kLongestWait{10, 0};

struct Service {
  std::mutex mutex;
  std::map<int, FileId> files; // published, by descriptor
  int socket = -1;             // -1: it does not run
};

Service& service() {
  static auto* value = new Service; // its thread outlives main()
  return *value;
}

/// A child has no thread that serves, and publishes nothing.
void end_in_child() {
  if (service().socket >= 0) {
    close(service().socket);
  }
  service().socket = -1;
  service().files.clear();
  service().mutex.unlock();
}

/// The address of a process's socket. False if the path is too long.
bool address_of(ProcessId process, sockaddr_un& address) {
  const std::string path = socket_of(process);
  if (path.size() >= sizeof(address.sun_path)) {
    errno = ENAMETOOLONG;
    return false;
  }
  address = {};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  return true;
}

int make_socket() {
  const int made = socket(AF_UNIX, SOCK_STREAM, 0);
  if (made >= 0) {
    prepare_socket(made);
  }
  return made;
}

void limit_waits(int socket) {
  setsockopt(
      socket, SOL_SOCKET, SO_RCVTIMEO, &kLongestWait, sizeof(kLongestWait));
  setsockopt(
      socket, SOL_SOCKET, SO_SNDTIMEO, &kLongestWait, sizeof(kLongestWait));
}

void answer(int connection) {
  Request request{};
  int unexpected = -1;
  if (!receive_all(connection, &request, sizeof(request), unexpected)) {
    return;
  }
  // The lock keeps the file open while it is sent.
  const std::lock_guard lock(service().mutex);
  const auto found = service().files.find(request.number);
  const bool here =
      found != service().files.end() && found->second == request.id;
  const Reply reply = here ? Reply::kFile : Reply::kGone;
  send_all(connection, &reply, sizeof(reply), here ? request.number : -1);
}

void serve(int socket) {
  for (;;) {
    const int connection = accept(socket, nullptr, nullptr);
    if (connection >= 0) {
      prepare_socket(connection);
      limit_waits(connection);
      answer(connection);
      close(connection);
    } else if (errno == EBADF || errno == EINVAL) {
      return;
    } else if (errno != EINTR && errno != ECONNABORTED) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10)); // no files
    }
  }
}

/// Starts the service of this process. The lock is held.
Result start(Service& all, ProcessId self) {
  static const int registered = pthread_atfork(
      [] { service().mutex.lock(); },
      [] { service().mutex.unlock(); },
      end_in_child);
  if (registered != 0) {
    return Result(registered);
  }
  sockaddr_un address{};
  const int made = make_socket();
  if (made < 0) {
    return Result::last();
  }
  if (!address_of(self, address) ||
      bind(
          made, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) !=
          0 ||
      listen(made, SOMAXCONN) != 0) {
    const Result failure = Result::last();
    close(made);
    return failure;
  }
  try {
    const SignalsBlocked blocked;
    std::thread(serve, made).detach();
  } catch (const std::system_error&) {
    close(made);
    unlink(address.sun_path);
    return Result(EAGAIN);
  }
  all.socket = made;
  return {};
}

} // namespace

Result publish(const File& file, std::int32_t& number) {
  // Before the lock: a fork locks the identity and the service in some order.
  ProcessId self = 0;
  if (Result found = this_process(self); !found) {
    return found;
  }
  Service& all = service();
  const std::lock_guard lock(all.mutex);
  if (all.socket < 0) {
    if (Result started = start(all, self); !started) {
      return started;
    }
  }
  number = descriptor_of(file);
  all.files[number] = file.id();
  return {};
}

void withdraw(const File& file) noexcept {
  const std::lock_guard lock(service().mutex);
  service().files.erase(descriptor_of(file));
}

Result open_published(
    ProcessId owner,
    std::int32_t number,
    const FileId& id,
    File& file) {
  sockaddr_un address{};
  const int connection = make_socket();
  if (connection < 0) {
    return Result::last();
  }
  limit_waits(connection);
  const Request request{number, 0, id};
  Reply reply{};
  int descriptor = -1;
  const bool answered = address_of(owner, address) &&
      connect(
          connection,
          reinterpret_cast<const sockaddr*>(&address),
          sizeof(address)) == 0 &&
      send_all(connection, &request, sizeof(request), -1) &&
      receive_all(connection, &reply, sizeof(reply), descriptor);
  Result result = answered ? Result() : Result::last();
  close(connection);
  if (answered && reply == Reply::kFile) {
    if (descriptor < 0) {
      return Result(EMFILE); // the system drops files beyond the limit
    }
    file = File(descriptor);
    file.set_id(id);
  }
  return result;
}

Result forbid_inspection() {
#if defined(PT_DENY_ATTACH) // of macOS; other headers of it lack the file
  return ptrace(PT_DENY_ATTACH, 0, nullptr, 0) == 0 ? Result() : Result::last();
#else
  return {};
#endif
}

} // namespace openreg::platform
