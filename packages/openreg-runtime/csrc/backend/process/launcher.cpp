// SPDX-License-Identifier: BSD-3-Clause
// Starts the launcher and passes its reports to the devices.
#include "backend/process/launcher.h"

#include "backend/executor.h"
#include "backend/process/packet.h"
#include "base/error.h"
#include "base/system_thread.h"
#include "platform/child.h"
#include "platform/library.h"
#include "platform/process.h"
#include "settings/config.h"

#include <algorithm>
#include <map>
#include <set>
#include <sstream>
#include <system_error>
#include <utility>

namespace openreg {
namespace {

using platform::Channel;
using platform::Child;
using Processes = std::map<std::uint64_t, std::weak_ptr<DeviceProcess>>;

struct Launcher {
  std::mutex mutex;
  std::vector<std::string> arguments;     // of the program that was set
  std::shared_ptr<const Channel> channel; // null: it does not run
  std::uint64_t next_number = 1;
  Processes processes; // by number
};

Launcher& launcher() {
  static auto* value = new Launcher; // the monitor outlives main()
  return *value;
}

/// The file of this library.
std::string own_library() {
  std::string file = platform::own_library();
  if (file.empty()) {
    throw Failure(
        orErrorUnknown, "the path of libopenreg cannot be determined");
  }
  return file;
}

std::vector<std::string> words_of(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) {
    words.push_back(std::move(word));
  }
  return words;
}

/// The reason in a launcher's report on a process.
std::string reason_of(const std::string& what, int number) {
  if (what == "killed") {
    return "its process was ended by " + platform::signal_text(number);
  }
  if (what == "stopped") {
    return "its process was stopped by " + platform::signal_text(number);
  }
  return "its process ended with status " + std::to_string(number);
}

/// Reads the reports of a launcher until it ends.
void watch(std::shared_ptr<const Channel> channel, const Child& child) {
  while (const auto packet = channel->receive()) {
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
  const std::string reason =
      "the launcher of device processes ended" + child.wait();
  std::vector<std::shared_ptr<DeviceProcess>> ended;
  {
    Launcher& all = launcher();
    const std::lock_guard lock(all.mutex);
    if (all.channel == channel) { // else a second one has begun
      all.channel = nullptr;
      for (const auto& [number, each] : all.processes) {
        if (auto process = each.lock()) {
          ended.push_back(std::move(process));
        }
      }
      all.processes.clear();
    }
  }
  channel = nullptr;
  for (const auto& process : ended) {
    process->lose(reason, /*expected=*/false);
  }
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
  first << "parent " << platform::process_number() << '\n'
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
  auto [own, its] = make_channel();
  Child child;
  if (const auto started = Child::start(arguments, its, child); !started) {
    throw Failure(
        orErrorUnknown,
        "the launcher of device processes, " + arguments[0] +
            ", does not start: " + started.text());
  }
  its = {};
  auto channel = std::make_shared<const Channel>(std::move(own));
  try {
    start_thread(
        [channel, child]() mutable { watch(std::move(channel), child); });
  } catch (const std::system_error& error) {
    channel = nullptr; // which ends it
    child.wait();
    throw Failure(
        orErrorUnknown,
        std::string("cannot start a thread for the device launcher: ") +
            error.what());
  }
  try {
    send_packet(*channel, first.str()); // if it is gone, watch() says so
  } catch (...) {
    channel->shut_down(); // which ends watch()
    throw;
  }
  all.channel = std::move(channel);
}

} // namespace

void DeviceProcess::rethrow() const {
  const std::lock_guard lock(mutex_);
  throw Failure(orErrorDeviceLost, reason_);
}

void DeviceProcess::attach(
    const platform::File& file,
    const CommandReporter& running) {
  check();
  {
    const std::lock_guard lock(mutex_);
    running_.push_back(&running);
  }
  // If the process has ended, the launcher will report it.
  static_cast<void>(send_packet(control_, "lane", file.handle()));
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
  if (all.channel == nullptr) {
    start_launcher(all, memory);
  }
  auto [own, its] = make_channel();
  const std::uint64_t number = all.next_number++;
  auto process =
      std::make_shared<DeviceProcess>(device, number, std::move(own), state);
  all.processes[number] = process;
  std::ostringstream start;
  start << "start " << number << ' ' << device << ' '
        << reinterpret_cast<std::uintptr_t>(memory.device_mapping(device))
        << ' ' << memory.own_span();
  send_packet(*all.channel, start.str(), its.handle()); // see watch()
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
  if (all.channel != nullptr) {
    send_packet(*all.channel, "kill " + std::to_string(process.number()));
  }
}

void set_launcher(std::vector<std::string> arguments) {
  Launcher& all = launcher();
  const std::lock_guard lock(all.mutex);
  all.arguments = std::move(arguments);
}

} // namespace openreg
