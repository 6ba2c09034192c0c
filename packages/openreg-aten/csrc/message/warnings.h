// SPDX-License-Identifier: BSD-3-Clause
// Warnings of kernels in a device process: the reply contains them, and the
// host repeats them.
#pragma once

#include "codec/wire.h"

#include <c10/util/Exception.h>

#include <optional>
#include <string>
#include <vector>

namespace openreg::aten {

/// Collects the warnings of this thread in a device process.
class WarningCollector final : private c10::WarningHandler {
 public:
  WarningCollector();
  WarningCollector(const WarningCollector&) = delete;
  WarningCollector& operator=(const WarningCollector&) = delete;

  /// Appends the warnings to a reply, even if there are none.
  void append_to(codec::Bytes& reply) const;

 private:
  void process(const c10::Warning& warning) override;

  struct Kept {
    bool deprecation;
    bool verbatim;
    std::string text;
    c10::SourceLocation place;
  };
  std::vector<Kept> kept_;
  std::optional<c10::WarningUtils::WarningHandlerGuard> guard_;
};

/// Repeats the warnings at the end of a reply, and returns the reply without
/// them. Throws codec::Malformed.
codec::ByteSpan repeat_warnings(codec::ByteSpan reply);

} // namespace openreg::aten
