// SPDX-License-Identifier: BSD-3-Clause
// The table of mechanisms: every registration with PyTorch has a name here, so
// that it can be listed, found in the source, and left out.
#pragma once

#include "export.h"

#include <string>
#include <vector>

namespace openreg::aten {

struct Mechanism {
  const char* name;
  const char* summary; // what PyTorch calls it
  const char* without; // what stops working without it
  const char* source;  // the file that registers it
  void (*enable)();
  bool last; // enabled after the others: it looks at what they registered
  bool enabled = false;
};

/// All mechanisms, ordered by name.
OPENREG_ATEN_API const std::vector<Mechanism>& mechanisms();

/// Registers every mechanism that OPENREG_DISABLE (names, separated by commas)
/// does not leave out; a second call does nothing. `also_known` are the names
/// of mechanisms that are not registered from C++. Throws c10::Error if the
/// variable holds a name that no mechanism has.
OPENREG_ATEN_API void enable_mechanisms(
    const std::vector<std::string>& also_known);

class MechanismRegistrar {
 public:
  explicit MechanismRegistrar(Mechanism mechanism);
};

} // namespace openreg::aten

/// Defines a mechanism; the body that follows registers it with PyTorch.
#define OPENREG_MECHANISM(name, summary, without) \
  OPENREG_DEFINE_MECHANISM(name, summary, without, false)

/// One that is enabled after all others.
#define OPENREG_MECHANISM_LAST(name, summary, without) \
  OPENREG_DEFINE_MECHANISM(name, summary, without, true)

#define OPENREG_DEFINE_MECHANISM(name, summary, without, last)                 \
  static void enable_##name();                                                 \
  static const ::openreg::aten::MechanismRegistrar name##_mechanism_registrar{ \
      {#name, summary, without, __FILE__, &enable_##name, last}};              \
  static void enable_##name()
