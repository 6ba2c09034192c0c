// SPDX-License-Identifier: BSD-3-Clause
// Dense operators that have a CPU kernel and a composite one, and those whose
// composite kernel serves the CPU but not a device that it does not know.
#include "mechanism.h"
#include "ops/over_composites.h"

namespace openreg::aten {
namespace {

// Composite kernels that ask for the device by name, or call a DispatchStub.
constexpr const char* kOnlyOnTheCPU[] = {
    "conj_physical_",
    "mode.values",
};

} // namespace

OPENREG_MECHANISM_LAST(
    composite,
    "TORCH_LIBRARY_IMPL(aten, PrivateUse1): over composite kernels") {
  using c10::DispatchKey;
  static auto library = MAKE_TORCH_LIBRARY_IMPL(aten, PrivateUse1);
  for (const char* name : kOnlyOnTheCPU) {
    library.impl(
        name, torch::CppFunction::makeFromBoxedFunction<&run_cpu_kernel<>>());
  }
  register_over_composites<DispatchKey::CPU, DispatchKey::PrivateUse1>(library);
}

} // namespace openreg::aten
