// SPDX-License-Identifier: BSD-3-Clause
// What the kernels of the CPU ask of the program, beside their arguments.
#pragma once

#include "codec/wire.h"

#include <c10/core/ScalarType.h>

#include <array>
#include <cstdint>

namespace openreg::aten {

/// What the CPU's kernels read of at::Context, and the default dtype.
struct Settings {
  c10::ScalarType default_dtype;
  bool refuses_nondeterministic;
  bool warns_of_nondeterministic;
  std::uint8_t flags;                     // a bit each
  std::array<std::uint8_t, 3> precisions; // at::Float32Precision
  std::uint8_t engine;                    // at::QEngine

  bool operator==(const Settings&) const = default;
};

/// Writes the settings of the program.
void write_context(codec::Writer& out);

/// Throws Malformed.
Settings read_context(codec::Reader& in);

/// While it lives, this process has these settings if it is that of a device:
/// kernels of several streams run there at a time. Those with other settings
/// wait until no kernel runs. Throws c10::Error for what PyTorch refuses.
class SettingsScope {
 public:
  explicit SettingsScope(const Settings& settings);
  SettingsScope(const SettingsScope&) = delete;
  SettingsScope& operator=(const SettingsScope&) = delete;
  ~SettingsScope();
};

} // namespace openreg::aten
