// SPDX-License-Identifier: BSD-3-Clause
// Where in a Python program a call comes from.
#pragma once

#include <memory>
#include <string>
#include <vector>

namespace openreg::distributed {

struct Frame {
  std::string function;
  std::string file;
  int line;
};

/// Frames, innermost first, as text: what reads it later may not wait for the
/// GIL. Null in a thread without Python.
using Stack = std::shared_ptr<const std::vector<Frame>>;

/// That of this thread.
Stack python_stack();

} // namespace openreg::distributed
