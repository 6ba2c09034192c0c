// SPDX-License-Identifier: BSD-3-Clause
// Error codes, their texts, and the last error of each thread.
#include "base/error.h"

#include "base/thread_local.h"

#include <cstdio>
#include <utility>

namespace openreg {
namespace {

constexpr ErrorDescription kDescriptions[] = {
    {orSuccess, "orSuccess", "no error"},
    {orErrorUnknown, "orErrorUnknown", "unknown error"},
    {orErrorNotReady, "orErrorNotReady", "work is still queued or running"},
    {orErrorInvalidValue, "orErrorInvalidValue", "invalid argument"},
    {orErrorInvalidDevice, "orErrorInvalidDevice", "invalid device ordinal"},
    {orErrorInvalidHandle, "orErrorInvalidHandle", "invalid handle"},
    {orErrorMemoryAllocation, "orErrorMemoryAllocation", "out of memory"},
    {orErrorNotPermitted, "orErrorNotPermitted", "operation not permitted"},
    {orErrorLaunchFailure, "orErrorLaunchFailure", "a kernel failed"},
    {orErrorNotSupported, "orErrorNotSupported", "operation not supported"},
    {orErrorInitialization,
     "orErrorInitialization",
     "devices in use before fork"},
    {orErrorIllegalAddress,
     "orErrorIllegalAddress",
     "access to memory that is not allocated"},
    {orErrorDeviceLost, "orErrorDeviceLost", "the device was lost"},
    {orErrorTimeout, "orErrorTimeout", "the wait took too long"},
    {orErrorPeerAccessAlreadyEnabled,
     "orErrorPeerAccessAlreadyEnabled",
     "peer access is enabled already"},
    {orErrorPeerAccessNotEnabled,
     "orErrorPeerAccessNotEnabled",
     "peer access is not enabled"},
    {orErrorHostMemoryAlreadyRegistered,
     "orErrorHostMemoryAlreadyRegistered",
     "host memory is pinned already"},
    {orErrorHostMemoryNotRegistered,
     "orErrorHostMemoryNotRegistered",
     "host memory is not registered"},
};

constexpr ErrorDescription kUnknown{
    orErrorUnknown,
    "unrecognized error code",
    "unrecognized error code"};

} // namespace

constinit OPENREG_THREAD_LOCAL bool t_has_last_error = false;
constinit OPENREG_THREAD_LOCAL const char* t_not_ready = nullptr;

const ErrorDescription& describe(orError_t code) noexcept {
  for (const ErrorDescription& description : kDescriptions) {
    if (description.code == code) {
      return description;
    }
  }
  return kUnknown;
}

Error& last_error() {
  static thread_local Error value;
  t_has_last_error = true;
  return value;
}

orError_t set_last_error(const char* function, const Error& error) noexcept {
  Error& last = last_error();
  t_not_ready = nullptr;
  last.code = error.code;
  try {
    last.message = std::string(function) + ": " + error.message;
  } catch (const std::bad_alloc&) {
    last.message.clear();
  }
  return error.code;
}

orError_t not_ready(const char* text) noexcept {
  t_not_ready = text;
  return orErrorNotReady;
}

LastError LastErrorScope::take() noexcept {
  LastError taken{std::nullopt, std::exchange(t_not_ready, nullptr)};
  if (t_has_last_error) {
    taken.error = std::exchange(last_error(), Error{});
  }
  return taken;
}

void LastErrorScope::restore(std::optional<LastError> last) noexcept {
  t_not_ready = last ? last->not_ready : nullptr;
  if (t_has_last_error) {
    last_error() = last && last->error ? std::move(*last->error) : Error{};
  }
}

void throw_forked() {
  throw Failure(
      orErrorInitialization,
      "the devices were in use before this process was forked, and a forked "
      "child can not use them; start the process with spawn");
}

std::string hex(const void* pointer) {
  char text[32];
  std::snprintf(text, sizeof(text), "%p", pointer);
  return text;
}

} // namespace openreg
