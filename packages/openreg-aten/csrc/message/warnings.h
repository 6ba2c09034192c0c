// SPDX-License-Identifier: BSD-3-Clause
// Warnings of kernels that run in the process of a device: they come with the
// reply, and the host gives them again.
#pragma once

#include "codec/wire.h"

#include <c10/util/Exception.h>

#include <optional>
#include <string>
#include <vector>

namespace openreg::aten {

/// While one lives in the process of a device, this thread keeps its warnings.
class WarningsKept final : private c10::WarningHandler {
 public:
  WarningsKept();
  WarningsKept(const WarningsKept&) = delete;
  WarningsKept& operator=(const WarningsKept&) = delete;

  /// Ends a reply with the warnings so far, also where there are none.
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

/// Warns of what a reply ends with, and returns the reply alone. Throws
/// codec::Malformed.
codec::ByteSpan repeat_warnings(codec::ByteSpan reply);

} // namespace openreg::aten
