// SPDX-License-Identifier: BSD-3-Clause
// Exceptions of C++ as those of Python.
#pragma once

#include <torch/csrc/Exceptions.h>

#include <exception>

namespace openreg::inductor {

/// Runs `body`; false with an exception of Python's set if it throws.
template <typename Body>
bool translated(const Body& body) noexcept {
  try {
    body();
    return true;
  } catch (...) {
    torch::translate_exception_to_python(std::current_exception());
    return false;
  }
}

} // namespace openreg::inductor
