// SPDX-License-Identifier: BSD-3-Clause
// Parses environment variables, and reports invalid ones.
#include "settings/setting.h"

#include "base/error.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <optional>
#include <utility>

namespace openreg {
namespace {

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

/// The power of two of a memory unit.
std::optional<int> shift_of(std::string_view unit) {
  static constexpr std::pair<std::string_view, int> kUnits[] = {
      {"", 0}, {"KiB", 10}, {"MiB", 20}, {"GiB", 30}, {"TiB", 40}};
  for (const auto& [name, shift] : kUnits) {
    if (unit == name) {
      return shift;
    }
  }
  return std::nullopt;
}

std::string_view without_blanks(std::string_view text) {
  constexpr const char* kBlanks = " \t";
  const auto begin = text.find_first_not_of(kBlanks);
  return begin == std::string_view::npos
      ? ""
      : text.substr(begin, text.find_last_not_of(kBlanks) - begin + 1);
}

} // namespace

Setting
look_up(const char* name, const char* initial, const char* description) {
  const char* value = std::getenv(name);
  return {
      name,
      value ? value : initial,
      value ? "environment" : kFromDefault,
      description,
      0,
      {},
      nullptr};
}

bool read_switch(Setting& setting) {
  if (setting.value != "0" && setting.value != "1") {
    reject(setting, "0 or 1");
  }
  setting.number = setting.value == "1" ? 1 : 0;
  return setting.number == 1;
}

std::uint64_t read_number(
    Setting& setting,
    std::uint64_t least,
    std::uint64_t most,
    std::string_view accepted) {
  std::string_view rest = setting.value;
  const auto number = parse_number(rest);
  if (!number || !rest.empty() || *number < least || *number > most) {
    reject(setting, accepted);
  }
  return setting.number = *number;
}

std::uint64_t read_bytes(
    Setting& setting,
    std::uint64_t least,
    std::uint64_t most,
    std::string_view accepted) {
  std::string_view rest = setting.value;
  const auto number = parse_number(rest);
  const auto shift = shift_of(rest);
  if (!number || !shift || *number > UINT64_MAX >> *shift ||
      *number << *shift < least || *number << *shift > most) {
    reject(setting, accepted);
  }
  return setting.number = *number << *shift;
}

void read_names(Setting& setting) {
  // A name with its terminator is as long as the name with its comma.
  setting.words = std::make_unique<char[]>(setting.value.size() + 1);
  char* word = setting.words.get();
  std::string_view rest = setting.value;
  while (!rest.empty()) {
    const auto length = std::min(rest.find(','), rest.size());
    const auto name = without_blanks(rest.substr(0, length));
    if (!name.empty() && name != "none") {
      setting.names.push_back(word);
      word = std::copy(name.begin(), name.end(), word) + 1;
    }
    rest.remove_prefix(std::min(length + 1, rest.size()));
  }
}

void reject(const Setting& setting, std::string_view accepted) {
  throw Failure(
      orErrorInvalidValue,
      "environment variable " + setting.name + "='" + setting.value +
          "' is not valid: expected " + std::string(accepted));
}

} // namespace openreg
