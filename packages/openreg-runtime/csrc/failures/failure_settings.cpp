// SPDX-License-Identifier: BSD-3-Clause
// The grammar of OPENREG_FAILURES: "none" or "site:key=value:...; site:...".
#include "failures/failure_injection.h"

#include <charconv>
#include <cstdint>
#include <limits>
#include <locale>
#include <set>
#include <sstream>
#include <string>
#include <type_traits>
#include <utility>

namespace openreg::failure_injection {
namespace {

constexpr std::pair<std::string_view, orFailureSite> kSites[] = {
    {"malloc", orFailureMalloc},
    {"malloc_host", orFailureMallocHost},
    {"launch", orFailureLaunch},
    {"copy", orFailureCopy}};

constexpr std::pair<std::string_view, orError_t> kErrors[] = {
    {"none", orSuccess},
    {"MemoryAllocation", orErrorMemoryAllocation},
    {"LaunchFailure", orErrorLaunchFailure},
    {"IllegalAddress", orErrorIllegalAddress},
    {"DeviceLost", orErrorDeviceLost}};

std::string_view strip(std::string_view text) {
  const auto begin = text.find_first_not_of(' ');
  if (begin == std::string_view::npos) {
    return {};
  }
  return text.substr(begin, text.find_last_not_of(' ') - begin + 1);
}

/// Removes and returns the text before the first `separator`.
std::string_view take(std::string_view& text, char separator) {
  const auto end = text.find(separator);
  const auto first = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  return strip(first);
}

/// Whether the whole text is a number.
template <typename Number>
bool read(std::string_view text, Number& value) {
  if constexpr (std::is_floating_point_v<Number>) {
    // std::from_chars() for these needs libstdc++ 11.
    std::istringstream stream{std::string(text)};
    stream.imbue(std::locale::classic());
    stream >> std::noskipws >> value;
    const bool whole =
        !stream.fail() && stream.peek() == std::char_traits<char>::eof();
    // As std::from_chars(): no plus sign, and no number too small for the type.
    const auto digits = text.substr(0, text.find_first_of("eE"));
    const bool vanished =
        value == 0 && digits.find_first_of("123456789") != digits.npos;
    return whole && !vanished && !text.starts_with('+');
  } else {
    const char* last = text.data() + text.size();
    const auto [end, error] = std::from_chars(text.data(), last, value);
    return error == std::errc() && end == last;
  }
}

template <typename Number>
Number number(std::string_view text) {
  Number value{};
  if (!read(text, value)) {
    throw Failure(
        orErrorInvalidValue, "'" + std::string(text) + "' is not a number");
  }
  return value;
}

template <typename Value, std::size_t N>
Value choose(
    const std::pair<std::string_view, Value> (&choices)[N],
    std::string_view text,
    const char* what) {
  std::string accepted;
  for (const auto& [name, value] : choices) {
    if (text == name) {
      return value;
    }
    accepted.append(accepted.empty() ? "" : ", ").append(name);
  }
  throw Failure(
      orErrorInvalidValue,
      "'" + std::string(text) + "' is not " + what + ": expected " + accepted);
}

orFailureSpec parse_one(std::string_view text) {
  orFailureSpec spec = OPENREG_FAILURE_SPEC_INIT;
  spec.site = choose(kSites, take(text, ':'), "a site");
  bool has_error = false;
  bool never = false;
  std::set<std::string_view> keys;
  while (!text.empty()) {
    std::string_view rest = take(text, ':');
    const std::string_view key = take(rest, '=');
    const std::string_view value = strip(rest);
    if (!keys.insert(key).second) {
      throw Failure(
          orErrorInvalidValue, "'" + std::string(key) + "' is given twice");
    }
    if (key == "device") {
      spec.device = number<int>(value);
    } else if (key == "error") {
      spec.error = choose(kErrors, value, "an error");
      has_error = true;
    } else if (key == "delay") {
      spec.delay = number<std::uint64_t>(value);
    } else if (key == "first") {
      spec.first = number<std::uint64_t>(value);
    } else if (key == "period") {
      spec.period = number<std::uint64_t>(value);
    } else if (key == "probability") {
      spec.probability = number<double>(value);
      never = spec.probability == 0; // 0 in a spec disables the probability
    } else if (key == "seed") {
      spec.seed = number<std::uint64_t>(value);
    } else {
      throw Failure(
          orErrorInvalidValue,
          "'" + std::string(key) +
              "' is not a key: expected device, error, delay, first, period, "
              "probability or seed");
    }
  }
  if (never && spec.first > 0) {
    spec.first = std::numeric_limits<std::uint64_t>::max();
    spec.period = 0;
  }
  if (!has_error && spec.delay == 0) {
    const bool allocates =
        spec.site == orFailureMalloc || spec.site == orFailureMallocHost;
    spec.error = allocates ? orErrorMemoryAllocation : orErrorLaunchFailure;
  }
  return spec;
}

} // namespace

std::vector<orFailureSpec> parse(std::string_view text, int device_count) {
  std::vector<orFailureSpec> result;
  if (strip(text) == "none") {
    return result;
  }
  while (!strip(text).empty()) {
    result.push_back(parse_one(take(text, ';')));
    check(result.back(), device_count);
  }
  return result;
}

} // namespace openreg::failure_injection
