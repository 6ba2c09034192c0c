// SPDX-License-Identifier: BSD-3-Clause
// The table of the runtime's environment variables.
#include "settings/config.h"

#include "base/error.h"
#include "failures/failure_injection.h"
#include "platform/channel.h"
#include "settings/machine_memory.h"
#include "settings/schedule_name.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <string>
#include <utility>

namespace openreg {
namespace {

constexpr std::uint64_t kMinMemory = std::uint64_t{1} << 20;
constexpr std::uint64_t kMaxMemory = std::uint64_t{1} << 40;
constexpr std::uint64_t kDefaultMemory = std::uint64_t{16} << 30;

struct Variable {
  const char* name;
  const char* initial;
  const char* description;
  void (*read)(Config& config, Setting& setting); // throws if it is invalid
};

/// Lowers the default device memory, so that all devices together leave a
/// quarter of the machine's memory free.
void fit_into_machine(Setting& setting, int devices) {
  constexpr int kMiB = 20;
  constexpr int kGiB = 30;
  const std::uint64_t most = std::max(
      machine_memory() / 4 * 3 / static_cast<std::uint64_t>(devices),
      kMinMemory);
  if (most >= kDefaultMemory) {
    return;
  }
  setting.value = most >> kGiB != 0 ? std::to_string(most >> kGiB) + "GiB"
                                    : std::to_string(most >> kMiB) + "MiB";
}

void read_failures(Config& config, Setting& setting) {
  try {
    config.failures =
        failure_injection::parse(setting.value, config.device_count);
  } catch (const Failure& failure) {
    reject(
        setting,
        std::string(
            "failures such as malloc:first=3;launch:device=1:period=9; ") +
            failure.what());
  }
}

void read_schedule(Config& config, Setting& setting) {
  Schedule schedule;
  if (!parse_schedule(setting.value, schedule)) {
    reject(setting, kScheduleNames);
  }
  if (schedule.mode != Schedule::Mode::kEager && config.launch_blocking) {
    reject(setting, "eager with OPENREG_LAUNCH_BLOCKING=1");
  }
  config.schedule = schedule;
}

constexpr Variable kVariables[] = {
    {"OPENREG_DEVICE_COUNT",
     "2",
     "number of devices, 1 to 64",
     [](Config& config, Setting& setting) {
       config.device_count = static_cast<int>(
           read_number(setting, 1, kMaxDevices, "a whole number from 1 to 64"));
     }},
    {"OPENREG_DEVICE_MEMORY",
     "16GiB",
     "memory of each device: bytes, or with KiB, MiB, GiB, TiB",
     [](Config& config, Setting& setting) {
       if (setting.source == kFromDefault) {
         fit_into_machine(setting, config.device_count);
       }
       config.device_memory = read_bytes(
           setting,
           kMinMemory,
           kMaxMemory,
           "a size from 1MiB to 1TiB, in bytes or with KiB, MiB, GiB or TiB");
     }},
    {"OPENREG_LAUNCH_BLOCKING",
     "0",
     "1 makes every call wait for the kernels and copies it enqueues",
     [](Config& config, Setting& setting) {
       config.launch_blocking = read_switch(setting);
     }},
    {"OPENREG_ISOLATION",
     "thread",
     "where a device runs: thread (this process), loopback (this process, "
     "with operators as messages), or process (a separate process)",
     [](Config& config, Setting& setting) {
       if (setting.value != "thread" && setting.value != "loopback" &&
           setting.value != "process") {
         reject(setting, "thread, loopback or process");
       }
       if (setting.value == "process" && !platform::kHasDeviceProcesses) {
         reject(setting, "thread or loopback on this system");
       }
       config.in_process = setting.value != "process";
     }},
    {"OPENREG_DEVICE_LAUNCHER",
     "none",
     "the command that starts device processes; none: the program's own",
     [](Config& config, Setting& setting) {
       config.device_launcher = setting.value == "none" ? "" : setting.value;
     }},
    {"OPENREG_DEVICE_LOG",
     "none",
     "the file that device processes write to; none: the program's standard "
     "error",
     [](Config& config, Setting& setting) {
       config.device_log = setting.value == "none" ? "" : setting.value;
     }},
    {"OPENREG_PEER_ACCESS",
     "1",
     "0 disables access of devices to each other's memory",
     [](Config& config, Setting& setting) {
       config.peer_access = read_switch(setting);
     }},
    {"OPENREG_MEMORY_CHECK",
     "0",
     "1 makes kernels fault on accesses to freed memory",
     [](Config& config, Setting& setting) {
       config.memory_check = read_switch(setting);
       if (config.memory_check && !config.in_process) {
         reject(setting, "0 with OPENREG_ISOLATION=process");
       }
     }},
    {"OPENREG_UNINITIALIZED",
     "none",
     "nan fills allocated and freed memory with NaN and indices out of range; "
     "none leaves the bytes of before",
     [](Config& config, Setting& setting) {
       if (setting.value != "none" && setting.value != "nan") {
         reject(setting, "none or nan");
       }
       if (setting.value != "none" && !config.in_process) {
         reject(setting, "none with OPENREG_ISOLATION=process");
       }
     }},
    {"OPENREG_ALLOW_COPIES",
     "0",
     "1 allows several copies of the library in one process",
     [](Config& config, Setting& setting) {
       config.allow_copies = read_switch(setting);
     }},
    {"OPENREG_WAIT_TIMEOUT",
     "0",
     "milliseconds that a call may wait for work; 0 disables the limit",
     [](Config& config, Setting& setting) {
       config.wait_timeout = read_number(
           setting,
           0,
           kMaxWaitTimeout,
           "a whole number of milliseconds from 0 to 86400000");
     }},
    {"OPENREG_FAILURES",
     "none",
     "injected failures, such as malloc:first=3;launch:period=100:delay=50",
     &read_failures},
    {"OPENREG_SCHEDULE",
     "eager",
     "the order in which streams run their work: eager, lazy (only what a call "
     "waits for), or random:SEED",
     &read_schedule},
};

Config load() {
  Config config;
  for (const Variable& variable : kVariables) {
    Setting setting =
        look_up(variable.name, variable.initial, variable.description);
    variable.read(config, setting);
    config.settings.push_back(std::move(setting));
  }
  return config;
}

struct Loaded {
  std::optional<Config> config;
  Error error;
};

const Loaded& loaded() {
  static const Loaded* value = [] {
    auto* result = new Loaded;
    try {
      result->config = load();
    } catch (const Failure& failure) {
      result->error = failure.error();
    }
    return result;
  }();
  return *value;
}

} // namespace

const Config& config() {
  const Loaded& value = loaded();
  if (!value.config) {
    throw Failure(value.error);
  }
  return *value.config;
}

bool is_configured(std::string_view name) {
  return std::any_of(
      std::begin(kVariables), std::end(kVariables), [&](const auto& variable) {
        return name == variable.name;
      });
}

} // namespace openreg
