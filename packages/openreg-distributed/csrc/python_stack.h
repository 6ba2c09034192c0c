// SPDX-License-Identifier: BSD-3-Clause
// Where in a Python program a call comes from.
#pragma once

#include <string>
#include <vector>

namespace openreg::distributed {

struct Frame {
  std::string function;
  std::string file;
  int line;
};

/// The stack of this thread, innermost first; empty in one without Python. As
/// text, since what reads it later may not wait for the GIL.
std::vector<Frame> python_stack();

} // namespace openreg::distributed
