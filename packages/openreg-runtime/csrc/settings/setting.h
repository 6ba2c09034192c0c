// SPDX-License-Identifier: BSD-3-Clause
// An environment variable: its value, source and description.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace openreg {

constexpr const char* kFromDefault = "default";

struct Setting {
  std::string name;
  std::string value;
  std::string source; // "environment" or "default"
  std::string description;
  std::uint64_t number = 0;       // of a switch or a number
  std::vector<const char*> names; // of a list of names: into `words`
  std::unique_ptr<char[]> words;
};

/// Looks up the variable without checking it.
Setting look_up(const char* name, const char* initial, const char* description);

// The following functions parse the value and throw Failure if it is invalid.

bool read_switch(Setting& setting);
std::uint64_t read_number(
    Setting& setting,
    std::uint64_t least,
    std::uint64_t most,
    std::string_view accepted);
std::uint64_t read_bytes(
    Setting& setting,
    std::uint64_t least,
    std::uint64_t most,
    std::string_view accepted);
/// Reads names separated by commas; "none" is the empty list.
void read_names(Setting& setting);
/// Throws Failure with the variable, its value and the accepted values.
[[noreturn]] void reject(const Setting& setting, std::string_view accepted);

} // namespace openreg
