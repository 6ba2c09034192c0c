// SPDX-License-Identifier: BSD-3-Clause
// Writes the pattern, on this thread or on a stream.
#include "stream/unwritten.h"

#include "device/device.h"
#include "device/error.h"
#include "device/gil.h"
#include "stream/all_streams.h"
#include "stream/capture.h"

#include <openreg/activity.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <string_view>

namespace openreg::aten {
namespace {

struct Fill {
  void* begin; // for kernels
  size_t size;
};

/// Whether this thread can write now, in stream order: it runs a kernel of the
/// stream, or the stream has no work.
bool is_current(orStream_t stream) {
  int here = 0;
  if (orStreamRunsHere(stream, &here) == orSuccess && here != 0) {
    return true;
  }
  return is_idle(stream);
}

} // namespace

bool fills_unwritten() {
  static const bool value = [] {
    orSetting setting = OPENREG_SETTING_INIT;
    OPENREG_CHECK(orGetSettingByName("OPENREG_UNINITIALIZED", &setting));
    return std::string_view(setting.value) == "nan";
  }();
  return value;
}

void write_unwritten(void* begin, size_t size) {
  auto* units = static_cast<uint16_t*>(begin);
  std::fill_n(units, size / sizeof(kUnwritten), kUnwritten);
  if (size % sizeof(kUnwritten) != 0) {
    std::memcpy(
        units + size / sizeof(kUnwritten), &kUnwritten, 1); // the low byte
  }
}

orError_t enqueue_unwritten(
    orStream_t stream,
    const c10::MempoolId_t& pool,
    void* begin,
    size_t size) {
  const auto capture = captures_underway() ? capture_of(stream) : nullptr;
  if (capture != nullptr && capture->pool() != pool) {
    return orSuccess;
  }
  auto fill = std::make_unique<Fill>(Fill{to_kernel(begin), size});
  if (capture == nullptr && is_current(stream)) {
    write_unwritten(fill->begin, fill->size);
    return orSuccess;
  }
  orLaunchInfo info = OPENREG_LAUNCH_INFO_INIT;
  info.name = "uninitialized";
  info.kind = orActivityMemset;
  info.bytes = size;
  const GilRelease released; // a full stream waits
  const orError_t error = orLaunchKernelWithInfo(
      stream,
      [](void* args) {
        const auto& own = *static_cast<const Fill*>(args);
        write_unwritten(own.begin, own.size);
      },
      fill.get(),
      [](void* args) { delete static_cast<Fill*>(args); },
      &info);
  if (error == orSuccess) {
    static_cast<void>(fill.release()); // the cleanup deletes it
  }
  return error;
}

} // namespace openreg::aten
