// SPDX-License-Identifier: BSD-3-Clause
// What the parts of the Python module share.
#pragma once

#include "device/device.h"

#include <torch/csrc/Exceptions.h>

#include <nanobind/nanobind.h>

#include <utility>

namespace openreg::aten {

inline c10::DeviceIndex to_index(int device) {
  check_device(device);
  return static_cast<c10::DeviceIndex>(device);
}

/// Turns c10's exceptions into PyTorch's Python exceptions.
template <typename Body>
auto translated(Body&& body) {
  try {
    return std::forward<Body>(body)();
  } catch (const c10::Error&) {
    torch::translate_exception_to_python(std::current_exception());
    throw nanobind::python_error();
  }
}

/// Adds the functions on memory.
void define_memory(nanobind::module_& m);
/// Adds the functions on streams.
void define_streams(nanobind::module_& m);
/// Adds the functions on traces of graphs.
void define_trace(nanobind::module_& m);

} // namespace openreg::aten
