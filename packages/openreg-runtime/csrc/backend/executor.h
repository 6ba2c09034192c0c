// SPDX-License-Identifier: BSD-3-Clause
// What runs messages: the program of a device, which a library above brings.
#pragma once

#include <openreg/openreg.h>

#include <string>
#include <vector>

namespace openreg {

struct Executor {
  orExecute_t execute;
  /// What a device's process loads, in this order, and the function of the last
  /// one that it calls before the first message.
  std::vector<std::string> libraries;
  std::string start;
};

/// The executor of this process. Throws orErrorNotSupported if there is none.
const Executor& executor();
/// The same, or null.
const Executor* find_executor() noexcept;
/// Throws orErrorInvalidValue if there is another one.
void set_executor(Executor executor);

} // namespace openreg
