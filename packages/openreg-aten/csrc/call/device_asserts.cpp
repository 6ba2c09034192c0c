// SPDX-License-Identifier: BSD-3-Clause
// Fails the device where a CUDA kernel would assert.
#include "call/device_asserts.h"

#include "device/error.h"

#include <string>

namespace openreg::aten {
namespace {

IsAssertion g_is_assertion = nullptr; // set before the first call

} // namespace

void use_device_asserts(IsAssertion is_assertion) {
  g_is_assertion = is_assertion;
}

bool assert_on_device(
    const c10::OperatorHandle& op,
    c10::DeviceIndex device,
    std::string_view what) {
  if (g_is_assertion == nullptr || !g_is_assertion(op.operator_name(), what)) {
    return false;
  }
  const std::string message =
      toString(op.operator_name()).append(": ").append(what);
  OPENREG_CHECK(orDeviceAssertFail(device, message.c_str()));
  return true;
}

} // namespace openreg::aten
