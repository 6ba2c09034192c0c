// SPDX-License-Identifier: BSD-3-Clause
// What becomes of the rows: a table for people, JSON for programs.
#pragma once

#include "measure.h"

#include <iosfwd>

namespace bench {

void print_table(std::ostream& out, const std::vector<Row>& rows);
void print_json(std::ostream& out, const std::vector<Row>& rows);

} // namespace bench
