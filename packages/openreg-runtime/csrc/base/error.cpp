// SPDX-License-Identifier: BSD-3-Clause
// Error codes, their texts, and the last error of each thread.
#include "base/error.h"

#include "base/thread_local.h"
#include "platform/thread.h"

#include <cstdio>
#include <memory>
#include <new>
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
    {orErrorStreamCaptureUnsupported,
     "orErrorStreamCaptureUnsupported",
     "operation not permitted when stream is capturing"},
    {orErrorStreamCaptureInvalidated,
     "orErrorStreamCaptureInvalidated",
     "operation failed due to a previous error during capture"},
    {orErrorStreamCaptureMerge,
     "orErrorStreamCaptureMerge",
     "operation would result in a merge of separate capture sequences"},
    {orErrorStreamCaptureUnmatched,
     "orErrorStreamCaptureUnmatched",
     "capture was not ended in the same stream as it began"},
    {orErrorStreamCaptureUnjoined,
     "orErrorStreamCaptureUnjoined",
     "capturing stream has unjoined work"},
    {orErrorStreamCaptureIsolation,
     "orErrorStreamCaptureIsolation",
     "dependency created on uncaptured work in another stream"},
    {orErrorCapturedEvent,
     "orErrorCapturedEvent",
     "operation not permitted on an event last recorded in a capturing stream"},
    {orErrorStreamCaptureWrongThread,
     "orErrorStreamCaptureWrongThread",
     "attempt to terminate a thread-local capture sequence from another "
     "thread"},
    {orErrorAssert, "orErrorAssert", "device-side assert triggered"},
};

/// Deletes a thread's message when the thread ends. This happens after its
/// thread_local variables, whose destructors may make failing calls. At process
/// exit the main thread's message is not deleted.
const platform::ThreadEnd& thread_end() {
  static const platform::ThreadEnd end = [] {
    platform::ThreadEnd made;
    if (!platform::ThreadEnd::make(
            [](void*) { delete std::exchange(t_last_message, nullptr); },
            made)) {
      throw std::bad_alloc();
    }
    return made;
  }();
  return end;
}

/// Throws std::bad_alloc.
void keep_message(std::string message) {
  if (t_last_message == nullptr) {
    auto made = std::make_unique<std::string>();
    if (!thread_end().set(made.get())) {
      throw std::bad_alloc();
    }
    t_last_message = made.release();
  }
  *t_last_message = std::move(message);
}

constexpr ErrorDescription kUnknown{
    orErrorUnknown,
    "unrecognized error code",
    "unrecognized error code"};

} // namespace

constinit OPENREG_THREAD_LOCAL orError_t t_last_code = orSuccess;
constinit OPENREG_THREAD_LOCAL std::string* t_last_message = nullptr;
constinit OPENREG_THREAD_LOCAL const char* t_not_ready = nullptr;

const ErrorDescription& describe(orError_t code) noexcept {
  for (const ErrorDescription& description : kDescriptions) {
    if (description.code == code) {
      return description;
    }
  }
  return kUnknown;
}

void number_error(Error& error) noexcept {
  static std::atomic<std::uint64_t> last{0};
  if (error.number == 0) {
    error.number = ++last;
  }
}

orError_t set_last_error(
    const char* function,
    orError_t code,
    std::string_view text) noexcept {
  t_not_ready = nullptr;
  t_last_code = code;
  try {
    keep_message(std::string(function).append(": ").append(text));
  } catch (const std::bad_alloc&) {
    if (t_last_message != nullptr) {
      t_last_message->clear();
    }
  }
  return code;
}

orError_t not_ready(const char* text) noexcept {
  t_not_ready = text;
  return orErrorNotReady;
}

LastError LastErrorScope::take() noexcept {
  LastError taken;
  taken.error.code = std::exchange(t_last_code, orSuccess);
  if (t_last_message != nullptr) {
    taken.error.message.swap(*t_last_message);
  }
  taken.not_ready = std::exchange(t_not_ready, nullptr);
  return taken;
}

void LastErrorScope::restore(std::optional<LastError>& last) noexcept {
  t_last_code = last ? last->error.code : orSuccess;
  if (t_last_message != nullptr) {
    *t_last_message = last ? std::move(last->error.message) : std::string();
  }
  t_not_ready = last ? last->not_ready : nullptr;
}

void throw_forked() {
  throw Failure(
      orErrorInitialization,
      "the devices were in use before this process was forked, and a forked "
      "child cannot use them; start the process with spawn");
}

std::string hex(const void* pointer) {
  char text[32];
  // "%p" differs between systems.
  std::snprintf(
      text, sizeof(text), "0x%zx", reinterpret_cast<std::uintptr_t>(pointer));
  return text;
}

} // namespace openreg
