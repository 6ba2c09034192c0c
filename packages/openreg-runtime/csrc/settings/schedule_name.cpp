// SPDX-License-Identifier: BSD-3-Clause
// Parses and writes the names of schedules.
#include "settings/schedule_name.h"

#include <charconv>
#include <system_error>

namespace openreg {
namespace {

constexpr std::string_view kRandomPrefix = "random:";

} // namespace

bool parse_schedule(std::string_view text, Schedule& schedule) noexcept {
  if (text == "eager" || text == "lazy") {
    schedule = {
        text == "lazy" ? Schedule::Mode::kLazy : Schedule::Mode::kEager, 0};
    return true;
  }
  if (!text.starts_with(kRandomPrefix)) {
    return false;
  }
  text.remove_prefix(kRandomPrefix.size());
  std::uint64_t seed = 0;
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), seed);
  if (error != std::errc() || end != text.data() + text.size()) {
    return false;
  }
  schedule = {Schedule::Mode::kRandom, seed};
  return true;
}

std::string name_of(const Schedule& schedule) {
  switch (schedule.mode) {
    case Schedule::Mode::kLazy:
      return "lazy";
    case Schedule::Mode::kRandom:
      return std::string(kRandomPrefix) + std::to_string(schedule.seed);
    case Schedule::Mode::kEager:
      break;
  }
  return "eager";
}

} // namespace openreg
