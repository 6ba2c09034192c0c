// SPDX-License-Identifier: BSD-3-Clause
// The part of the C API that chooses the schedule of streams.
#include "base/error.h"
#include "device/runtime.h"
#include "schedule/scheduler.h"
#include "settings/config.h"

#include <string>

using namespace openreg;

extern "C" {

orError_t orSetSchedule(const char* schedule) noexcept {
  return api_call("orSetSchedule", [&] {
    check_not_null(schedule, "schedule");
    Schedule wanted;
    if (!parse_schedule(schedule, wanted)) {
      throw Failure(
          orErrorInvalidValue,
          "schedule '" + std::string(schedule) + "' is not valid: expected " +
              std::string(kScheduleNames));
    }
    if (wanted.mode != Schedule::Mode::kEager && config().launch_blocking) {
      throw Failure(
          orErrorInvalidValue,
          "schedule '" + std::string(schedule) +
              "' has no effect with OPENREG_LAUNCH_BLOCKING=1: expected eager");
    }
    if (!runtime().idle()) {
      throw Failure(
          orErrorNotPermitted,
          "streams have pending work: expected idle devices, as after "
          "orDeviceSynchronize() for each device");
    }
    schedule::start(wanted);
  });
}

orError_t orGetSchedule(const char** schedule) noexcept {
  return api_call("orGetSchedule", [&] {
    check_not_null(schedule, "schedule");
    runtime();
    *schedule = schedule::name();
  });
}

orError_t orGetScheduleFlag(const int** flag) noexcept {
  return api_call("orGetScheduleFlag", [&] {
    check_not_null(flag, "flag");
    runtime();
    *flag = &schedule::g_mode;
  });
}

} // extern "C"
