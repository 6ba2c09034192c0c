// SPDX-License-Identifier: BSD-3-Clause
// The part of the C API that injects faults.
#include "failures/fault_injection.h"

#include "base/error.h"
#include "base/struct_size.h"
#include "device/runtime.h"
#include "settings/config.h"

#include <tuple>

using namespace openreg;

extern "C" {

orError_t orFaultInject(orFault_t* fault, const orFaultSpec* spec) noexcept {
  return api_call("orFaultInject", [&] {
    check_not_null(fault, "fault");
    const orFaultSpec known = read_struct(spec, "spec");
    runtime(); // so that the faults of the environment come first
    fault_injection::check(known, config().device_count);
    *fault = fault_injection::add(known);
  });
}

orError_t
orFaultGetCounts(orFault_t fault, uint64_t* calls, uint64_t* hits) noexcept {
  return api_call("orFaultGetCounts", [&] {
    check_not_null(calls, "calls");
    check_not_null(hits, "hits");
    std::tie(*calls, *hits) = fault_injection::counts(fault);
  });
}

orError_t orFaultRemove(orFault_t fault) noexcept {
  return api_call("orFaultRemove", [&] { fault_injection::remove(fault); });
}

} // extern "C"
