// SPDX-License-Identifier: BSD-3-Clause
// Collects the mechanisms at load time and enables them once.
#include "base/mechanism.h"

#include "base/keys.h"

#include <algorithm>

namespace openreg::aten {
namespace {

std::vector<Mechanism>& table() {
  static auto* value = new std::vector<Mechanism>;
  return *value;
}

} // namespace

MechanismRegistrar::MechanismRegistrar(Mechanism mechanism) {
  table().push_back(mechanism);
}

const std::vector<Mechanism>& mechanisms() {
  return table();
}

void enable_mechanisms(const std::set<std::string>& disabled) {
  static bool done = false;
  if (done) {
    return;
  }
  done = true;
  std::sort(
      table().begin(), table().end(), [](const auto& left, const auto& right) {
        return std::string(left.name) < right.name;
      });
  for (const bool last : {false, true}) {
    for (auto& mechanism : table()) {
      const bool is_last = mechanism.kind == Mechanism::Kind::kLast;
      const bool applies =
          !kIsCuda || mechanism.kind != Mechanism::Kind::kPrivateUse1;
      if (is_last == last && applies && disabled.count(mechanism.name) == 0) {
        mechanism.enable();
        mechanism.enabled = true;
      }
    }
  }
}

} // namespace openreg::aten
