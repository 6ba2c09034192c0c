// SPDX-License-Identifier: BSD-3-Clause
// Reads and validates the environment variables of the runtime.
#include "settings/config.h"

#include "base/error.h"
#include "failures/failure_injection.h"

#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string_view>
#include <utility>

namespace openreg {
namespace {

constexpr std::size_t kMinMemory = std::size_t{1} << 20;
constexpr std::size_t kMaxMemory = std::size_t{1} << 40;

[[noreturn]] void reject(
    std::string_view name,
    std::string_view value,
    std::string_view accepted) {
  throw Failure(
      orErrorInvalidValue,
      "environment variable " + std::string(name) + "='" + std::string(value) +
          "' is not valid: expected " + std::string(accepted));
}

std::optional<std::uint64_t> parse_number(std::string_view& text) {
  std::uint64_t number = 0;
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end == text.data()) {
    return std::nullopt;
  }
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return number;
}

std::optional<std::size_t> parse_bytes(std::string_view text) {
  const auto number = parse_number(text);
  if (!number) {
    return std::nullopt;
  }
  static constexpr std::pair<std::string_view, int> kUnits[] = {
      {"", 0}, {"KiB", 10}, {"MiB", 20}, {"GiB", 30}, {"TiB", 40}};
  for (const auto& [unit, shift] : kUnits) {
    if (text == unit) {
      const bool overflows = *number > (UINT64_MAX >> shift);
      return overflows ? std::nullopt
                       : std::optional<std::size_t>(*number << shift);
    }
  }
  return std::nullopt;
}

/// Looks a variable up, notes it in the settings and returns its value.
std::string read(
    Config& config,
    const char* name,
    const char* fallback,
    const char* description) {
  const char* value = std::getenv(name);
  config.settings.push_back(
      {name,
       value ? value : fallback,
       value ? "environment" : "default",
       description});
  return config.settings.back().value;
}

/// Reads a variable that is 0 or 1.
bool read_switch(
    Config& config,
    const char* name,
    const char* fallback,
    const char* description) {
  const auto value = read(config, name, fallback, description);
  if (value != "0" && value != "1") {
    reject(name, value, "0 or 1");
  }
  return value == "1";
}

void read_device_count(Config& config) {
  const auto count =
      read(config, "OPENREG_DEVICE_COUNT", "2", "number of devices, 1 to 64");
  std::string_view rest = count;
  const auto number = parse_number(rest);
  if (!number || !rest.empty() || *number < 1 || *number > kMaxDevices) {
    reject("OPENREG_DEVICE_COUNT", count, "a whole number from 1 to 64");
  }
  config.device_count = static_cast<int>(*number);
}

void read_device_memory(Config& config) {
  const auto memory = read(
      config,
      "OPENREG_DEVICE_MEMORY",
      "16GiB",
      "memory of each device: bytes, or with KiB, MiB, GiB, TiB");
  const auto bytes = parse_bytes(memory);
  if (!bytes || *bytes < kMinMemory || *bytes > kMaxMemory) {
    reject(
        "OPENREG_DEVICE_MEMORY",
        memory,
        "a size from 1MiB to 1TiB, in bytes or with KiB, MiB, GiB or TiB");
  }
  config.device_memory = *bytes;
}

void read_isolation(Config& config) {
  const auto isolation = read(
      config,
      "OPENREG_ISOLATION",
      "thread",
      "where a device lives: thread (this process)");
  if (isolation != "thread") {
    reject("OPENREG_ISOLATION", isolation, "thread");
  }
}

void read_wait_timeout(Config& config) {
  const auto timeout = read(
      config,
      "OPENREG_WAIT_TIMEOUT",
      "0",
      "milliseconds that a call may wait for work; 0 is no limit");
  std::string_view rest = timeout;
  const auto number = parse_number(rest);
  if (!number || !rest.empty() || *number > kMaxWaitTimeout) {
    reject(
        "OPENREG_WAIT_TIMEOUT",
        timeout,
        "a whole number of milliseconds from 0 to 86400000");
  }
  config.wait_timeout = *number;
}

void read_failures(Config& config) {
  const auto failures = read(
      config,
      "OPENREG_FAILURES",
      "none",
      "injected failures, such as malloc:first=3;launch:period=100:delay=50");
  try {
    config.failures = failure_injection::parse(failures, config.device_count);
  } catch (const Failure& failure) {
    reject(
        "OPENREG_FAILURES",
        failures,
        std::string(
            "failures such as malloc:first=3;launch:device=1:period=9; ") +
            failure.what());
  }
}

Config load() {
  Config config;
  read_device_count(config);
  read_device_memory(config);
  config.launch_blocking = read_switch(
      config,
      "OPENREG_LAUNCH_BLOCKING",
      "0",
      "1 waits for each kernel and copy where it is enqueued");
  read_isolation(config);
  config.peer_access = read_switch(
      config,
      "OPENREG_PEER_ACCESS",
      "1",
      "0 makes devices that cannot reach each other's memory");
  config.memory_check = read_switch(
      config,
      "OPENREG_MEMORY_CHECK",
      "0",
      "1 makes a kernel fault that touches memory after it was freed");
  config.allow_copies = read_switch(
      config,
      "OPENREG_ALLOW_COPIES",
      "0",
      "1 lets several copies of the library have devices in one process");
  read_wait_timeout(config);
  read_failures(config);
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

} // namespace openreg
