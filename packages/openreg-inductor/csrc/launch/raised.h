// SPDX-License-Identifier: BSD-3-Clause
// Keeps exceptions that pass through C functions, which return only a text, so
// that the caller of a model gets the original exception.
#pragma once

#include <c10/macros/Export.h>

#include <exception>

namespace openreg::inductor {

/// Keeps the last exception that leaves a C function of this library on this
/// thread. Scopes may be nested.
class C10_EXPORT RaisedScope {
 public:
  RaisedScope() noexcept;
  RaisedScope(const RaisedScope&) = delete;
  RaisedScope& operator=(const RaisedScope&) = delete;
  ~RaisedScope();

  /// Null if nothing was raised.
  const std::exception_ptr& raised() const {
    return raised_;
  }

  /// Keeps the current exception if a scope is open.
  static void keep() noexcept;

 private:
  RaisedScope* outer_;
  std::exception_ptr raised_;
};

} // namespace openreg::inductor

/// Like PyTorch's macro, and keeps the exception.
#define OPENREG_CONVERT_EXCEPTION_TO_ERROR_CODE(...) \
  AOTI_TORCH_CONVERT_EXCEPTION_TO_ERROR_CODE(        \
      try { __VA_ARGS__ } catch (...) {              \
        openreg::inductor::RaisedScope::keep();      \
        throw;                                       \
      })
