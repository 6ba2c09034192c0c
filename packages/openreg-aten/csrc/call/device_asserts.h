// SPDX-License-Identifier: BSD-3-Clause
// Errors of CPU kernels that are assertions in CUDA's kernels: with
// OPENREG_CUDA_LIMITS=1 they fail the device.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/core/Device.h>

#include <string_view>

namespace openreg::aten {

/// Whether an error with the text `what` is an assertion in CUDA's kernel for
/// the operator.
using IsAssertion =
    bool (*)(const c10::OperatorName& name, std::string_view what);

/// Makes assertions fail devices.
void use_device_asserts(IsAssertion is_assertion);

/// Fails the device if the error `what` of a kernel of `op` is an assertion,
/// and returns whether it is.
bool assert_on_device(
    const c10::OperatorHandle& op,
    c10::DeviceIndex device,
    std::string_view what);

} // namespace openreg::aten
