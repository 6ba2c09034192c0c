// SPDX-License-Identifier: BSD-3-Clause
// The part of the C API that injects failures.
#include "failures/failure_injection.h"

#include "base/error.h"
#include "base/struct_size.h"
#include "device/runtime.h"
#include "settings/config.h"

#include <tuple>

using namespace openreg;

extern "C" {

orError_t orFailureInject(
    orFailure_t* failure,
    const orFailureSpec* spec) noexcept {
  return api_call("orFailureInject", [&] {
    check_not_null(failure, "failure");
    const orFailureSpec known = read_struct(spec, "spec");
    runtime(); // so that the failures of the environment come first
    failure_injection::check(known, config().device_count);
    *failure = failure_injection::add(known);
  });
}

orError_t orFailureGetCounts(
    orFailure_t failure,
    uint64_t* calls,
    uint64_t* hits) noexcept {
  return api_call("orFailureGetCounts", [&] {
    check_not_null(calls, "calls");
    check_not_null(hits, "hits");
    std::tie(*calls, *hits) = failure_injection::counts(failure);
  });
}

orError_t orFailureRemove(orFailure_t failure) noexcept {
  return api_call(
      "orFailureRemove", [&] { failure_injection::remove(failure); });
}

} // extern "C"
