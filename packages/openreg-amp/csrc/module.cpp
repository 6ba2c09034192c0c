// SPDX-License-Identifier: BSD-3-Clause
// The Python module openreg_amp._C.
#include "autocast.h"
#include "rules.h"

#include <nanobind/nanobind.h>

namespace nb = nanobind;

NB_MODULE(_C, m) {
  m.doc() = "Autocast kernels for PrivateUse1.";
  m.def(
      "register_autocast",
      &openreg::amp::register_autocast,
      "Registers every rule with PyTorch's dispatcher. Call it once.");
  m.def(
      "rules",
      [] {
        nb::list table;
        for (const auto& rule : openreg::amp::rules()) {
          table.append(nb::make_tuple(rule.op, rule.policy));
        }
        return table;
      },
      nb::sig("def rules() -> list[tuple[str, str]]"),
      "Every rule as (operator, policy).");
}
