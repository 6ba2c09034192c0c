// SPDX-License-Identifier: BSD-3-Clause
// The device's random number generators.
//
// A generator owns a CPU generator that the CPU kernels draw from, so the same
// seed gives the CPU's numbers while the CPU's own generator stands still.
// Kernels draw in the order of the program, whichever their streams.
#pragma once

#include "base/export.h"

#include <ATen/core/Generator.h>

#include <optional>

namespace openreg::aten {

/// Whether the mechanism is on: the hooks then offer generators.
bool generators_enabled();

/// Gives a CPU generator the state that it has on a device, if kernels draw
/// from it elsewhere.
using FetchGenerator =
    void (*)(const at::Generator& cpu, c10::DeviceIndex device);
void set_fetch_generator(FetchGenerator fetch);

/// The default generator of a device; -1 is the current device.
OPENREG_ATEN_API const at::Generator& default_generator(
    c10::DeviceIndex device);
at::Generator new_generator(c10::DeviceIndex device);

/// The CPU generator inside `generator`, or inside the device's default one,
/// for the next kernel of the current stream, which then waits for the kernels
/// that draw before it. Throws if that is not of the device.
at::Generator prepare_cpu_generator(
    c10::DeviceIndex device,
    const std::optional<at::Generator>& generator);

} // namespace openreg::aten
