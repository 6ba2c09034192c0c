// SPDX-License-Identifier: BSD-3-Clause
// The table of mechanisms. Each registration with PyTorch has a name, so that
// it can be listed, found in the source, and disabled.
#pragma once

#include "base/export.h"

#include <set>
#include <string>
#include <vector>

namespace openreg::aten {

struct Mechanism {
  const char* name;
  const char* summary; // the PyTorch name of the registration
  const char* without; // the effect of disabling it
  const char* source;  // the file that registers it
  void (*enable)();
  enum class Kind {
    kAny,
    kLast,        // enabled after the others, whose registrations it inspects
    kPrivateUse1, // PyTorch offers it to PrivateUse1 only
  } kind;
  bool enabled = false;
};

/// Returns all mechanisms, ordered by name.
OPENREG_ATEN_API const std::vector<Mechanism>& mechanisms();

/// Registers each mechanism whose name is not in `disabled`. A second call has
/// no effect.
OPENREG_ATEN_API void enable_mechanisms(const std::set<std::string>& disabled);

class MechanismRegistrar {
 public:
  explicit MechanismRegistrar(Mechanism mechanism);
};

} // namespace openreg::aten

/// Defines a mechanism. The body that follows registers it with PyTorch.
#define OPENREG_MECHANISM(name, summary, without) \
  OPENREG_DEFINE_MECHANISM(name, summary, without, kAny)

/// Defines a mechanism that is enabled after all others.
#define OPENREG_MECHANISM_LAST(name, summary, without) \
  OPENREG_DEFINE_MECHANISM(name, summary, without, kLast)

/// Defines a mechanism that is off with OPENREG_DEVICE=cuda.
#define OPENREG_MECHANISM_OF_PRIVATEUSE1(name, summary, without) \
  OPENREG_DEFINE_MECHANISM(name, summary, without, kPrivateUse1)

#define OPENREG_DEFINE_MECHANISM(name, summary, without, kind)                 \
  static void enable_##name();                                                 \
  static const ::openreg::aten::MechanismRegistrar name##_mechanism_registrar{ \
      {#name,                                                                  \
       summary,                                                                \
       without,                                                                \
       __FILE__,                                                               \
       &enable_##name,                                                         \
       ::openreg::aten::Mechanism::Kind::kind}};                               \
  static void enable_##name()
