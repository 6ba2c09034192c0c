// SPDX-License-Identifier: BSD-3-Clause
// The Python stack of a call.
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

/// Frames, innermost first, as text, because a later reader may not wait for
/// the GIL. Null in a thread without Python.
using Stack = std::shared_ptr<const std::vector<Frame>>;

/// The stack of this thread.
Stack python_stack();

} // namespace openreg::distributed
