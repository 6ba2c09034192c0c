// SPDX-License-Identifier: BSD-3-Clause
// The part of the C API that records activity.
#include "activity/recorder.h"
#include "base/error.h"
#include "base/process.h"
#include "base/system_thread.h"
#include "device/stream_handles.h"

#include <openreg/activity.h>

#include <cstddef>
#include <string>

using namespace openreg;

namespace {

void check_id_kind(orActivityIdKind kind) {
  if (kind != orActivityIdExternal && kind != orActivityIdUser) {
    throw Failure(
        orErrorInvalidValue,
        "kind " + std::to_string(static_cast<int>(kind)) +
            " is not orActivityIdExternal or orActivityIdUser");
  }
}

} // namespace

extern "C" {

orError_t orActivityEnable(unsigned int kinds, size_t capacity) noexcept {
  return api_call("orActivityEnable", [&] {
    if (kinds == 0 || (kinds & ~orActivityAll) != 0) {
      throw Failure(
          orErrorInvalidValue,
          "kinds " + std::to_string(kinds) +
              " is not valid: expected a combination of 1 << "
              "orActivityKind");
    }
    activity::enable(kinds, capacity);
  });
}

orError_t orActivityDisable(void) noexcept {
  return api_call("orActivityDisable", [] { activity::disable(); });
}

orError_t orActivityFlush(uint64_t milliseconds) noexcept {
  return api_call("orActivityFlush", [&] {
    if (running_stream() != nullptr) {
      throw Failure(
          orErrorNotPermitted, "a kernel cannot wait for kernels to finish");
    }
    const CancellationDeferred deferred;
    constexpr uint64_t kAtExit = 200; // a kernel may never end
    const bool exits = process::exiting();
    const uint64_t limit = exits && milliseconds == 0 ? kAtExit : milliseconds;
    if (!activity::wait_for_tickets(Deadline::after(limit))) {
      throw Failure(
          orErrorTimeout,
          "recorded commands have not finished after " + std::to_string(limit) +
              " ms; they continue");
    }
  });
}

orError_t orActivityForget(void) noexcept {
  return api_call("orActivityForget", [] {
    if (running_stream() == nullptr) {
      throw Failure(
          orErrorNotPermitted,
          "no kernel is running on this thread: expected a call from within a "
          "kernel");
    }
    forget_record();
  });
}

orError_t orActivityTake(
    orActivity* records,
    size_t recordSize,
    size_t capacity,
    size_t* count,
    uint64_t* dropped) noexcept {
  return api_call("orActivityTake", [&] {
    check_not_null(records, "records");
    check_not_null(count, "count");
    check_not_null(dropped, "dropped");
    if (recordSize != sizeof(orActivity)) {
      throw Failure(
          orErrorInvalidValue,
          "recordSize " + std::to_string(recordSize) +
              " is not the size of orActivity: expected " +
              std::to_string(sizeof(orActivity)));
    }
    *count = activity::take(records, capacity, *dropped);
  });
}

orError_t orActivityGetState(const unsigned int** kinds) noexcept {
  return api_call("orActivityGetState", [&] {
    check_not_null(kinds, "kinds");
    static_assert(std::atomic<unsigned int>::is_always_lock_free);
    *kinds = reinterpret_cast<const unsigned int*>(&activity::g_kinds);
  });
}

orError_t orActivityPushId(orActivityIdKind kind, uint64_t id) noexcept {
  return api_call("orActivityPushId", [&] {
    check_id_kind(kind);
    activity::push_id(kind, id);
  });
}

orError_t orActivityPopId(orActivityIdKind kind, uint64_t* id) noexcept {
  return api_call("orActivityPopId", [&] {
    check_id_kind(kind);
    check_not_null(id, "id");
    *id = activity::pop_id(kind);
  });
}

orError_t orStreamGetNumber(orStream_t stream, int* number) noexcept {
  return api_call("orStreamGetNumber", [&] {
    check_not_null(number, "number");
    *number = stream_of(stream).number();
  });
}

} // extern "C"
