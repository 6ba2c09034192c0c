// SPDX-License-Identifier: BSD-3-Clause
// Exceptions that pass through C functions, which return no more than the
// words: who calls a model finds the exception itself.
#pragma once

#include <c10/macros/Export.h>

#include <exception>

namespace openreg::inductor {

/// Keeps the last exception that leaves a C function of this library on this
/// thread. Scopes may lie in each other.
class C10_EXPORT RaisedScope {
 public:
  RaisedScope() noexcept;
  RaisedScope(const RaisedScope&) = delete;
  RaisedScope& operator=(const RaisedScope&) = delete;
  ~RaisedScope();

  /// Null if there was none.
  const std::exception_ptr& raised() const {
    return raised_;
  }

  /// Keeps the exception that is being handled, if a scope is open.
  static void keep() noexcept;

 private:
  RaisedScope* outer_;
  std::exception_ptr raised_;
};

} // namespace openreg::inductor

/// As PyTorch's, for bodies whose exceptions are to be kept.
#define OPENREG_CONVERT_EXCEPTION_TO_ERROR_CODE(...) \
  AOTI_TORCH_CONVERT_EXCEPTION_TO_ERROR_CODE(        \
      try { __VA_ARGS__ } catch (...) {              \
        openreg::inductor::RaisedScope::keep();      \
        throw;                                       \
      })
