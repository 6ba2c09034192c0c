// SPDX-License-Identifier: BSD-3-Clause
// Where in a Python program a call comes from.
#pragma once

#include <memory>
#include <string>
#include <vector>

namespace openreg::distributed {

/// A code object of Python, as text: what reads it later may not wait for the
/// GIL.
struct Code {
  std::string function;
  std::string file;
};

struct Frame {
  std::shared_ptr<const Code> code;
  int line;
};

/// Frames, innermost first. Null in a thread without Python.
using Stack = std::shared_ptr<const std::vector<Frame>>;

/// That of this thread.
Stack python_stack();

} // namespace openreg::distributed
