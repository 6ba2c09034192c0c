// SPDX-License-Identifier: BSD-3-Clause
// What the Python module said about the GIL.
#include "device/gil.h"

namespace openreg::aten {
namespace {

GilFunctions g_functions{
    []() -> void* { return nullptr; },
    nullptr,
    [] { return false; },
    [](void (*)(void*), void*) {},
    [] {},
    [](const char*) { return false; }};

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

bool has_module(const char* name) {
  return g_functions.has_module(name);
}

GilRelease::GilRelease() : released_(g_functions.release()) {}

GilRelease::~GilRelease() {
  if (released_ != nullptr) {
    g_functions.acquire(released_);
  }
}

} // namespace openreg::aten
