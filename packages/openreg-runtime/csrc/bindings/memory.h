// SPDX-License-Identifier: BSD-3-Clause
// Host memory of Python objects, as copies and registrations see it.
#pragma once

#include "bindings/bindings.h"

namespace openreg::python {

/// The bytes of an object that supports the buffer protocol.
struct HostView {
  void* address;
  std::size_t size;
  nb::object owner; // keeps them where they are
};

/// Throws TypeError or ValueError unless the bytes are contiguous, and writable
/// if asked for.
HostView view_of(nb::handle object, bool writable);

inline std::uintptr_t number_of(const void* address) {
  return reinterpret_cast<std::uintptr_t>(address);
}

} // namespace openreg::python
