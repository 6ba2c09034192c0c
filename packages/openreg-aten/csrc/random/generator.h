// SPDX-License-Identifier: BSD-3-Clause
// The random number generators of the device.
//
// A generator owns a CPU generator from which the CPU kernels draw. The same
// seed therefore produces the same numbers as on the CPU, and the default CPU
// generator does not advance. Kernels draw in program order, regardless of
// their streams.
#pragma once

#include "base/export.h"
#include "random/generator_state.h"

#include <ATen/core/Generator.h>

#include <optional>

namespace openreg::aten {

/// Whether the mechanism is on. The hooks then return generators.
bool generators_enabled();

/// Assigns a CPU generator the state that it has on a device, if kernels draw
/// from a copy there.
using FetchGenerator =
    void (*)(const at::Generator& cpu, c10::DeviceIndex device);
OPENREG_ATEN_API void set_fetch_generator(FetchGenerator fetch);

/// Returns the default generator of a device; -1 is the current device.
OPENREG_ATEN_API const at::Generator& default_generator(
    c10::DeviceIndex device);
at::Generator new_generator(c10::DeviceIndex device);

/// Returns the CPU generator for the next kernel of a stream of `device`, which
/// then waits for the kernels that draw before it. If the process of another
/// device has the state, waits for these kernels, and reads the state back.
at::Generator cpu_generator_for(
    GeneratorState& state,
    c10::DeviceIndex device,
    orStream_t stream);

/// Returns the CPU generator inside `generator`, or inside the default
/// generator of the device, for the next kernel of the current stream. The
/// kernel then waits for the kernels that draw before it. Throws if `generator`
/// is not on the device.
at::Generator prepare_cpu_generator(
    c10::DeviceIndex device,
    const std::optional<at::Generator>& generator);

} // namespace openreg::aten
