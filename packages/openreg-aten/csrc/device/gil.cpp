// SPDX-License-Identifier: BSD-3-Clause
// Stores the GIL functions that the Python module registers.
#include "device/gil.h"

namespace openreg::aten {
namespace {

GilFunctions g_functions{
    []() -> void* { return nullptr; },
    nullptr,
    [] { return false; },
    [](void (*)(void*), void*) {},
    [] {}};

} // namespace

void set_gil_functions(GilFunctions functions) {
  g_functions = functions;
}

bool is_python_thread() {
  return g_functions.is_python_thread();
}

void call_with_python(void (*work)(void*), void* argument) {
  g_functions.call(work, argument);
}

void rethrow_interrupt() {
  g_functions.rethrow_interrupt();
}

GilRelease::GilRelease() : released_(g_functions.release()) {}

GilRelease::~GilRelease() {
  if (released_ != nullptr) {
    g_functions.acquire(released_);
  }
}

} // namespace openreg::aten
