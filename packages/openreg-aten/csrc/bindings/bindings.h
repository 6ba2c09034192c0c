// SPDX-License-Identifier: BSD-3-Clause
// Declarations shared by the parts of the Python module.
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

/// Converts c10 exceptions to PyTorch's Python exceptions.
template <typename Body>
auto translated(Body&& body) {
  try {
    return std::forward<Body>(body)();
  } catch (const c10::Error&) {
    torch::translate_exception_to_python(std::current_exception());
    throw nanobind::python_error();
  }
}

/// Adds the memory functions.
void define_memory(nanobind::module_& m);
/// Adds the memory pool functions.
void define_pools(nanobind::module_& m);
/// Adds the stream functions.
void define_streams(nanobind::module_& m);
/// Adds the graph trace functions.
void define_trace(nanobind::module_& m);

} // namespace openreg::aten
