// SPDX-License-Identifier: BSD-3-Clause
// The executor of messages, which a library above the runtime provides.
#pragma once

#include <openreg/openreg.h>

#include <string>
#include <vector>

namespace openreg {

struct Executor {
  orExecute_t execute;
  /// The libraries that a device process loads, in this order. Before the first
  /// message it calls the function `start` of the last one.
  std::vector<std::string> libraries;
  std::string start;
};

/// The executor of this process. Throws orErrorNotSupported if there is none.
const Executor& executor();
/// The executor of this process, or null.
const Executor* find_executor() noexcept;
/// Throws orErrorInvalidValue if another executor is set.
void set_executor(Executor executor);

} // namespace openreg
