// SPDX-License-Identifier: BSD-3-Clause
// Results from errno.
#include "platform/result.h"

#include <cerrno>
#include <cstring>

namespace openreg::platform {

Result Result::last() noexcept {
  return Result(errno);
}

Result Result::full() noexcept {
  return Result(ENOSPC);
}

std::string Result::text() const {
  return std::strerror(code_);
}

bool Result::is_full() const noexcept {
  return code_ == ENOSPC;
}

bool Result::is_out_of_files() const noexcept {
  return code_ == EMFILE || code_ == ENFILE;
}

bool Result::is_out_of_resources() const noexcept {
  return is_out_of_files() || code_ == ENOMEM;
}

} // namespace openreg::platform
