// SPDX-License-Identifier: BSD-3-Clause
// Global settings of the program that CPU kernels read besides their arguments.
#pragma once

#include "codec/wire.h"

#include <c10/core/ScalarType.h>

#include <array>
#include <cstdint>

namespace openreg::aten {

/// The settings of at::Context that CPU kernels read, and the default dtype.
struct ContextSettings {
  c10::ScalarType default_dtype;
  bool refuses_nondeterministic;
  bool warns_of_nondeterministic;
  std::uint8_t flags;                     // one bit each
  std::array<std::uint8_t, 3> precisions; // at::Float32Precision
  std::uint8_t engine;                    // at::QEngine

  bool operator==(const ContextSettings&) const = default;
};

/// Writes the settings of the program.
void write_context(codec::Writer& out);

/// Throws Malformed.
ContextSettings read_context(codec::Reader& in);

/// Applies settings in a device process for a scope. Kernels of several streams
/// run in it concurrently, so a kernel with different settings waits until no
/// other kernel runs. Throws c10::Error for settings that PyTorch rejects.
class SettingsScope {
 public:
  explicit SettingsScope(const ContextSettings& settings);
  SettingsScope(const SettingsScope&) = delete;
  SettingsScope& operator=(const SettingsScope&) = delete;
  ~SettingsScope();
};

} // namespace openreg::aten
