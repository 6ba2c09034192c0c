// SPDX-License-Identifier: BSD-3-Clause
// Translates C++ exceptions to Python exceptions.
#pragma once

#include <torch/csrc/Exceptions.h>

#include <exception>

namespace openreg::inductor {

/// Runs `body`. If it throws, sets a Python exception and returns false.
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
