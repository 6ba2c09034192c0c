// SPDX-License-Identifier: BSD-3-Clause
// Collects the mechanisms at load time and enables them once.
#include "mechanism.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <cstdlib>
#include <set>
#include <sstream>

namespace openreg::aten {
namespace {

std::vector<Mechanism>& table() {
  static auto* value = new std::vector<Mechanism>;
  return *value;
}

std::set<std::string> disabled_names() {
  std::set<std::string> names;
  const char* value = std::getenv("OPENREG_DISABLE");
  std::istringstream text(value ? value : "");
  constexpr const char* kBlank = " \t";
  for (std::string name; std::getline(text, name, ',');) {
    const auto begin = name.find_first_not_of(kBlank);
    if (begin != std::string::npos) {
      const auto end = name.find_last_not_of(kBlank);
      names.insert(name.substr(begin, end - begin + 1));
    }
  }
  return names;
}

} // namespace

MechanismRegistrar::MechanismRegistrar(Mechanism mechanism) {
  table().push_back(mechanism);
}

const std::vector<Mechanism>& mechanisms() {
  return table();
}

void enable_mechanisms(const std::vector<std::string>& also_known) {
  static bool done = false;
  if (done) {
    return;
  }
  std::sort(
      table().begin(), table().end(), [](const auto& left, const auto& right) {
        return std::string(left.name) < right.name;
      });
  const auto disabled = disabled_names();
  std::set<std::string> known(also_known.begin(), also_known.end());
  for (const auto& mechanism : table()) {
    known.insert(mechanism.name);
  }
  for (const auto& name : disabled) {
    if (known.count(name) == 0) {
      std::ostringstream names;
      for (const auto& each : known) {
        names << (names.tellp() > 0 ? ", " : "") << each;
      }
      TORCH_CHECK(
          false,
          "environment variable OPENREG_DISABLE names '",
          name,
          "', which is no mechanism: expected names out of ",
          names.str());
    }
  }
  done = true;
  for (const bool last : {false, true}) {
    for (auto& mechanism : table()) {
      if (mechanism.last == last && disabled.count(mechanism.name) == 0) {
        mechanism.enable();
        mechanism.enabled = true;
      }
    }
  }
}

} // namespace openreg::aten
