// SPDX-License-Identifier: BSD-3-Clause
// Reports: a table and a JSON file.
#pragma once

#include "measure.h"

#include <iosfwd>

namespace bench {

void print_table(std::ostream& out, const std::vector<Row>& rows);
void print_json(std::ostream& out, const std::vector<Row>& rows);

} // namespace bench
