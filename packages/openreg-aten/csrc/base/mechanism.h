// SPDX-License-Identifier: BSD-3-Clause
// The table of mechanisms: every registration with PyTorch has a name here, so
// that it can be listed, found in the source, and left out.
#pragma once

#include "base/export.h"

#include <set>
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

/// Registers every mechanism whose name is not among `disabled`; a second call
/// does nothing.
OPENREG_ATEN_API void enable_mechanisms(const std::set<std::string>& disabled);

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
