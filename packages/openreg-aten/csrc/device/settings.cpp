// SPDX-License-Identifier: BSD-3-Clause
// Registers the settings of this library with the runtime, and reads their
// values.
#include "device/settings.h"

#include "device/error.h"

#include <cstdint>
#include <limits>
#include <string_view>

namespace openreg::aten {
namespace {

constexpr const char* kInlineBytes = "OPENREG_INLINE_BYTES";
constexpr const char* kBursts = "OPENREG_ENQUEUE_BURSTS";
constexpr const char* kHalfInFloat32 = "OPENREG_HALF_IN_FLOAT32";
constexpr const char* kCudaLimits = "OPENREG_CUDA_LIMITS";

std::uint64_t number_of(const char* name) {
  orSetting setting = OPENREG_SETTING_INIT;
  OPENREG_CHECK(orGetSettingByName(name, &setting));
  return setting.number;
}

} // namespace

void register_settings() {
  OPENREG_CHECK(orRegisterSetting(
      kInlineBytes,
      "65536",
      orSettingNumber,
      "operators with more bytes of operands are enqueued on idle streams "
      "too"));
  OPENREG_CHECK(orRegisterSetting(
      kBursts,
      "1",
      orSettingSwitch,
      "0 always runs small operators on idle streams inline; 1 enqueues them "
      "where that is measured to be faster"));
  OPENREG_CHECK(orRegisterSetting(
      kHalfInFloat32,
      "1",
      orSettingSwitch,
      "1 computes 16-bit float operators in float32 where the CPU kernel is "
      "slow, and rounds once, as CUDA does; 0 keeps the CPU's bits"));
  OPENREG_CHECK(orRegisterSetting(
      kCudaLimits,
      "0",
      orSettingSwitch,
      "1 raises CUDA's errors for dtypes and non-deterministic operators, and "
      "fails the device for indices out of range, as an assertion does"));
}

bool cuda_limits_setting() {
  register_settings();
  return number_of(kCudaLimits) == 1;
}

bool half_in_float32_setting() {
  register_settings();
  return number_of(kHalfInFloat32) == 1;
}

bool is_thread_setting() {
  orSetting setting = OPENREG_SETTING_INIT;
  OPENREG_CHECK(orGetSettingByName("OPENREG_ISOLATION", &setting));
  return std::string_view(setting.value) == "thread";
}

bool enqueue_bursts_setting() {
  register_settings();
  return number_of(kBursts) == 1;
}

size_t inline_bytes_setting() {
  register_settings(); // for programs without the Python module
  if (number_of("OPENREG_LAUNCH_BLOCKING") == 1) {
    // So that errors keep their types.
    return std::numeric_limits<size_t>::max();
  }
  return number_of(kInlineBytes);
}

} // namespace openreg::aten
