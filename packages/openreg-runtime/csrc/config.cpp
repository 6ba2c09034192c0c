// SPDX-License-Identifier: BSD-3-Clause
// Reads and validates the environment variables of the runtime.
#include "config.h"

#include "error.h"

#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string_view>
#include <utility>

namespace openreg {
namespace {

constexpr int kMaxDevices = 64;
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

Config load() {
  Config config;
  const auto count =
      read(config, "OPENREG_DEVICE_COUNT", "2", "number of devices, 1 to 64");
  std::string_view rest = count;
  const auto number = parse_number(rest);
  if (!number || !rest.empty() || *number < 1 || *number > kMaxDevices) {
    reject("OPENREG_DEVICE_COUNT", count, "a whole number from 1 to 64");
  }
  config.device_count = static_cast<int>(*number);

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

  const auto blocking = read(
      config,
      "OPENREG_LAUNCH_BLOCKING",
      "0",
      "1 runs each kernel on the calling thread before its launch returns");
  if (blocking != "0" && blocking != "1") {
    reject("OPENREG_LAUNCH_BLOCKING", blocking, "0 or 1");
  }
  config.launch_blocking = blocking == "1";

  const auto isolation = read(
      config,
      "OPENREG_ISOLATION",
      "thread",
      "where a device lives: thread (this process)");
  if (isolation != "thread") {
    reject("OPENREG_ISOLATION", isolation, "thread");
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

} // namespace openreg

extern "C" {

orError_t orGetSettingCount(int* count) noexcept {
  return openreg::api_call("orGetSettingCount", [&] {
    openreg::check_not_null(count, "count");
    *count = static_cast<int>(openreg::config().settings.size());
  });
}

orError_t orGetSetting(int index, orSetting* setting) noexcept {
  return openreg::api_call("orGetSetting", [&] {
    openreg::check_not_null(setting, "setting");
    const auto& settings = openreg::config().settings;
    if (index < 0 || index >= static_cast<int>(settings.size())) {
      throw openreg::Failure(
          orErrorInvalidValue,
          "index " + std::to_string(index) + " is not in [0, " +
              std::to_string(settings.size()) + ")");
    }
    const auto& entry = settings[static_cast<std::size_t>(index)];
    *setting = {
        entry.name.c_str(),
        entry.value.c_str(),
        entry.source.c_str(),
        entry.description.c_str()};
  });
}

} // extern "C"
