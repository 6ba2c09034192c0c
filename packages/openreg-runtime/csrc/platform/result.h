// SPDX-License-Identifier: BSD-3-Clause
// The outcome of a request to the operating system.
#pragma once

#include <string>

namespace openreg::platform {

/// Success, or an error code of the system: errno, or GetLastError().
class [[nodiscard]] Result {
 public:
  constexpr Result() noexcept = default;
  constexpr explicit Result(int code) noexcept : code_(code) {}
  /// The error of the calling thread's last request.
  static Result last() noexcept;
  /// The error that a table is full.
  static Result full() noexcept;

  constexpr explicit operator bool() const noexcept {
    return code_ == 0;
  }
  /// The system's description of the error.
  std::string text() const;
  /// The error of full().
  bool is_full() const noexcept;
  /// The process or the machine cannot open more files.
  bool is_out_of_files() const noexcept;
  /// The process or the machine cannot open more files, or memory is exhausted.
  bool is_out_of_resources() const noexcept;

 private:
  int code_ = 0;
};

} // namespace openreg::platform
