// SPDX-License-Identifier: BSD-3-Clause
// Turns errors of CPU kernels that are assertions in CUDA kernels into device
// failures, with OPENREG_CUDA_LIMITS=1.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/core/Device.h>

#include <string_view>

namespace openreg::aten {

/// Whether an error with the text `what` is an assertion in the CUDA kernel of
/// the operator.
using IsAssertion =
    bool (*)(const c10::OperatorName& name, std::string_view what);

/// Makes assertions fail the device.
void use_device_asserts(IsAssertion is_assertion);

/// Fails the device if the error `what` of a kernel of `op` is an assertion.
/// Returns whether it is.
bool assert_on_device(
    const c10::OperatorHandle& op,
    c10::DeviceIndex device,
    std::string_view what);

} // namespace openreg::aten
