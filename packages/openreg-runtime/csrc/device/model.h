// SPDX-License-Identifier: BSD-3-Clause
// The hardware as which the devices describe themselves.
#pragma once

#include <string>

namespace openreg {

struct Model {
  std::string name;
  /// The compute capability. Programs for CUDA choose code paths by it.
  int major = 0;
  int minor = 0;
  int processors = 0;
};

/// Returns the model of all devices. The default depends on OPENREG_DEVICE.
Model model();
void set_model(const Model& model);

} // namespace openreg
