// SPDX-License-Identifier: BSD-3-Clause
// Starts the launcher and passes its reports to the devices.
#include "backend/process/launcher.h"

#include "backend/executor.h"
#include "backend/process/packet.h"
#include "base/error.h"
#include "base/system_thread.h"
#include "settings/config.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <dlfcn.h>
#include <map>
#include <set>
#include <spawn.h>
#include <sstream>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>

extern char** environ;

namespace openreg {
namespace {

using Processes = std::map<std::uint64_t, std::weak_ptr<DeviceProcess>>;

struct Launcher {
  std::mutex mutex;
  std::vector<std::string> arguments; // of the program that was set
  int socket = -1;                    // -1: it does not run
  std::uint64_t next_number = 1;
  Processes processes; // by number
};

Launcher& launcher() {
  static auto* value = new Launcher; // the monitor outlives main()
  return *value;
}

/// The file of this library.
std::string own_library() {
  Dl_info info{};
  if (dladdr(reinterpret_cast<const void*>(&orInit), &info) == 0) {
    throw Failure(
        orErrorUnknown, "the path of libopenreg cannot be determined");
  }
  return info.dli_fname;
}

std::vector<std::string> words_of(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) {
    words.push_back(std::move(word));
  }
  return words;
}

std::string signal_text(int number) {
  // sigabbrev_np() needs glibc 2.32.
  static constexpr std::pair<int, const char*> kNames[] = {
      {SIGABRT, "SIGABRT"},    {SIGALRM, "SIGALRM"}, {SIGBUS, "SIGBUS"},
      {SIGFPE, "SIGFPE"},      {SIGHUP, "SIGHUP"},   {SIGILL, "SIGILL"},
      {SIGINT, "SIGINT"},      {SIGIO, "SIGIO"},     {SIGKILL, "SIGKILL"},
      {SIGPIPE, "SIGPIPE"},    {SIGPROF, "SIGPROF"}, {SIGQUIT, "SIGQUIT"},
      {SIGSEGV, "SIGSEGV"},    {SIGSTOP, "SIGSTOP"}, {SIGSYS, "SIGSYS"},
      {SIGTERM, "SIGTERM"},    {SIGTRAP, "SIGTRAP"}, {SIGTSTP, "SIGTSTP"},
      {SIGTTIN, "SIGTTIN"},    {SIGTTOU, "SIGTTOU"}, {SIGUSR1, "SIGUSR1"},
      {SIGUSR2, "SIGUSR2"},    {SIGXCPU, "SIGXCPU"}, {SIGXFSZ, "SIGXFSZ"},
      {SIGVTALRM, "SIGVTALRM"}};
  std::string text = "signal " + std::to_string(number);
  for (const auto& [signal, name] : kNames) {
    if (signal == number) {
      text.append(" (").append(name).append(")");
    }
  }
  return text;
}

/// The reason in a launcher's report on a process.
std::string reason_of(const std::string& what, int number) {
  if (what == "killed") {
    return "its process was ended by " + signal_text(number);
  }
  if (what == "stopped") {
    return "its process was stopped by " + signal_text(number);
  }
  return "its process ended with status " + std::to_string(number);
}

/// Reads the reports of a launcher until it ends.
void watch(int socket, pid_t pid) {
  while (const auto packet = receive_packet(socket)) {
    std::istringstream words(packet->text);
    std::string what;
    std::uint64_t number = 0;
    int detail = 0;
    words >> what >> number >> detail;
    std::shared_ptr<DeviceProcess> process;
    {
      Launcher& all = launcher();
      const std::lock_guard lock(all.mutex);
      const auto found = all.processes.find(number);
      if (found != all.processes.end()) {
        process = found->second.lock();
      }
    }
    if (process == nullptr) {
      continue;
    }
    process->lose(
        what == "failed" ? "it did not start: " +
                packet->text.substr(
                    std::min(packet->text.find('\n') + 1, packet->text.size()))
                         : reason_of(what, detail),
        /*expected=*/false);
  }
  int status = 0;
  pid_t ended_pid = 0;
  do {
    ended_pid = waitpid(pid, &status, 0);
  } while (ended_pid < 0 && errno == EINTR);
  std::string reason = "the launcher of device processes ended";
  if (ended_pid < 0) {
    reason += ", and the program has waited for it";
  } else if (WIFSIGNALED(status)) {
    reason += " by " + signal_text(WTERMSIG(status));
  } else if (WIFEXITED(status)) {
    reason += " with status " + std::to_string(WEXITSTATUS(status));
  }
  std::vector<std::shared_ptr<DeviceProcess>> ended;
  {
    Launcher& all = launcher();
    const std::lock_guard lock(all.mutex);
    if (all.socket == socket) { // else a second one has begun
      all.socket = -1;
      for (const auto& [number, each] : all.processes) {
        if (auto process = each.lock()) {
          ended.push_back(std::move(process));
        }
      }
      all.processes.clear();
    }
  }
  close(socket);
  for (const auto& process : ended) {
    process->lose(reason, /*expected=*/false);
  }
}

/// Starts the program; returns its process.
pid_t spawn(const std::vector<std::string>& arguments, int socket) {
  std::vector<std::string> words = arguments;
  words.push_back("--socket");
  words.push_back("3");
  std::vector<char*> pointers;
  pointers.reserve(words.size() + 1);
  for (std::string& word : words) {
    pointers.push_back(word.data());
  }
  pointers.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, socket, 3);
  // A separate session, so that signals from the terminal do not reach it.
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(
      &attributes, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK);
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  pid_t pid = 0;
  const int error = posix_spawnp(
      &pid, pointers[0], &actions, &attributes, pointers.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) {
    throw Failure(
        orErrorUnknown,
        "the launcher of device processes, " + words[0] +
            ", does not start: " + std::strerror(error));
  }
  return pid;
}

/// Starts the launcher. The lock is held.
void start_launcher(Launcher& all, const AddressSpace& memory) {
  std::vector<std::string> arguments = config().device_launcher.empty()
      ? all.arguments
      : words_of(config().device_launcher);
  if (arguments.empty()) {
    throw Failure(
        orErrorNotSupported,
        "OPENREG_ISOLATION=process needs a launcher for device processes: set "
        "OPENREG_DEVICE_LAUNCHER to a command such as 'python -m "
        "openreg_runtime.device'");
  }
  std::ostringstream first;
  const Executor* executor = find_executor();
  first << "parent " << getpid() << '\n'
        << "range "
        << reinterpret_cast<std::uintptr_t>(memory.device_mapping(0)) << ' '
        << reinterpret_cast<std::uintptr_t>(memory.end()) << '\n'
        << "runtime " << own_library() << '\n';
  if (executor != nullptr) {
    for (const std::string& library : executor->libraries) {
      first << "library " << library << '\n';
    }
    first << "start " << executor->start << '\n';
  }
  if (!config().device_log.empty()) {
    first << "log " << config().device_log << '\n';
  }
  const auto [own, its] = make_socket_pair();
  pid_t pid = 0;
  try {
    pid = spawn(arguments, its);
  } catch (...) {
    close(own);
    close(its);
    throw;
  }
  close(its);
  try {
    start_thread([socket = own, pid] { watch(socket, pid); });
  } catch (const std::system_error& error) {
    close(own); // which ends it
    waitpid(pid, nullptr, 0);
    throw Failure(
        orErrorUnknown,
        std::string("cannot start a thread for the device launcher: ") +
            error.what());
  }
  try {
    send_packet(own, first.str()); // if it is gone already, watch() says so
  } catch (...) {
    shutdown(own, SHUT_RDWR); // watch() closes it
    throw;
  }
  all.socket = own;
}

} // namespace

DeviceProcess::~DeviceProcess() {
  close(control_);
}

void DeviceProcess::rethrow() const {
  const std::lock_guard lock(mutex_);
  throw Failure(orErrorDeviceLost, reason_);
}

void DeviceProcess::attach(int file, const CommandReporter& running) {
  check();
  {
    const std::lock_guard lock(mutex_);
    running_.push_back(&running);
  }
  // If the process has ended, the launcher will report it.
  static_cast<void>(send_packet(control_, "lane", file));
}

void DeviceProcess::detach(const CommandReporter& running) {
  const std::lock_guard lock(mutex_);
  std::erase(running_, &running);
}

void DeviceProcess::lose(const std::string& reason, bool expected) {
  {
    const std::lock_guard lock(mutex_);
    if (is_lost()) {
      return;
    }
    reason_ = "device " + std::to_string(device_) + " was lost: " + reason;
    std::set<std::string> names;
    for (const CommandReporter* each : running_) {
      if (const char* name = each->running()) {
        names.insert(name);
      }
    }
    const char* before = " while it ran ";
    for (const std::string& name : names) {
      reason_ += std::exchange(before, " and ") + name;
    }
    if (!expected) { // before anyone can ask for the reason, and with it
      state_.fail({orErrorDeviceLost, reason_});
    }
    lost_.store(true, std::memory_order_release);
  }
}

std::shared_ptr<DeviceProcess> start_device_process(
    int device,
    const AddressSpace& memory,
    DeviceState& state) {
  const CancellationDeferred deferred;
  Launcher& all = launcher();
  const std::lock_guard lock(all.mutex);
  if (all.socket < 0) {
    start_launcher(all, memory);
  }
  const auto [own, its] = make_socket_pair();
  const std::uint64_t number = all.next_number++;
  auto process = std::make_shared<DeviceProcess>(device, number, own, state);
  all.processes[number] = process;
  std::ostringstream start;
  start << "start " << number << ' ' << device << ' '
        << reinterpret_cast<std::uintptr_t>(memory.device_mapping(device))
        << ' ' << memory.own_span();
  try {
    send_packet(all.socket, start.str(), its); // if it is gone: see watch()
  } catch (...) {
    close(its);
    throw;
  }
  close(its);
  std::erase_if(
      all.processes, [](const auto& each) { return each.second.expired(); });
  return process;
}

void end_device_process(
    DeviceProcess& process,
    const std::string& reason,
    bool expected) {
  process.lose(reason, expected);
  Launcher& all = launcher();
  const std::lock_guard lock(all.mutex);
  if (all.socket >= 0) {
    send_packet(all.socket, "kill " + std::to_string(process.number()));
  }
}

void set_launcher(std::vector<std::string> arguments) {
  Launcher& all = launcher();
  const std::lock_guard lock(all.mutex);
  all.arguments = std::move(arguments);
}

} // namespace openreg
