// SPDX-License-Identifier: BSD-3-Clause
// The table that tools/check_runtime_tests.py writes from the header.
#include "documented.h"

const std::map<std::string, std::set<orError_t>>& documented_codes() {
  static const std::map<std::string, std::set<orError_t>> table = {
#include "documented_codes.inc"
  };
  return table;
}

bool documents(const std::string& function, orError_t code) {
  return documented_codes().at(function).count(code) > 0;
}
