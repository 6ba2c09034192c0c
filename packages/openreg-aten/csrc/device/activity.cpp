// SPDX-License-Identifier: BSD-3-Clause
// Descriptions of launches.
#include "device/activity.h"

#include "base/thread_local.h"
#include "device/error.h"

namespace openreg::aten {

namespace detail {
const unsigned int* const recorded_kinds = [] {
  const unsigned int* kinds = nullptr;
  OPENREG_CHECK(orActivityGetState(&kinds));
  return kinds;
}();
} // namespace detail

namespace {

thread_local const orLaunchInfo* t_description = nullptr;

} // namespace

orLaunchInfo describe_launch(const char* name, std::size_t bytes) noexcept {
  if (t_description != nullptr) {
    return *t_description;
  }
  orLaunchInfo info = OPENREG_LAUNCH_INFO_INIT;
  info.name = name;
  info.bytes = bytes;
  return info;
}

LaunchDescription::LaunchDescription(const orLaunchInfo& info) noexcept
    : info_(info), outer_(t_description) {
  t_description = &info_;
}

LaunchDescription::~LaunchDescription() {
  t_description = outer_;
}

} // namespace openreg::aten
