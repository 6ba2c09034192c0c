// SPDX-License-Identifier: BSD-3-Clause
// The names of schedules, as OPENREG_SCHEDULE accepts them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace openreg {

struct Schedule {
  enum class Mode : int { kEager, kLazy, kRandom };
  Mode mode = Mode::kEager;
  std::uint64_t seed = 0; // of kRandom
};

/// The accepted names, for errors.
inline constexpr std::string_view kScheduleNames =
    "eager, lazy, or random:SEED with a whole number, such as random:7";

/// Returns false if the text is not the name of a schedule.
bool parse_schedule(std::string_view text, Schedule& schedule) noexcept;
std::string name_of(const Schedule& schedule);

} // namespace openreg
