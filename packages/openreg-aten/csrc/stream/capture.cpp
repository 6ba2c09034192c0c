// SPDX-License-Identifier: BSD-3-Clause
// The captures of this process, by the numbers that the runtime assigns.
#include "stream/capture.h"

#include "device/error.h"
#include "stream/stream.h"

#include <ATen/CPUGeneratorImpl.h>

#include <algorithm>
#include <unordered_map>

namespace openreg::aten {
namespace {

struct Captures {
  std::mutex mutex;
  std::unordered_map<uint64_t, std::shared_ptr<Capture>> by_id;
};

Captures& captures() {
  static auto* value = new Captures;
  return *value;
}

/// Returns the capture number of a stream, or 0 if it is not captured or no
/// longer exists.
uint64_t id_of(orStream_t stream) {
  orStreamCaptureStatus status = orStreamCaptureStatusNone;
  uint64_t id = 0;
  if (orStreamGetCaptureInfo(stream, &status, &id) != orSuccess) {
    static_cast<void>(orGetLastError());
  }
  return id;
}

} // namespace

at::Generator Capture::stand_in_for(
    const std::shared_ptr<GeneratorState>& state) {
  const std::lock_guard lock(mutex_);
  const auto found =
      std::find_if(drawn_.begin(), drawn_.end(), [&state](const Drawn& each) {
        return each.state == state;
      });
  if (found != drawn_.end()) {
    return found->stand_in;
  }
  drawn_.push_back({state, at::make_generator<at::CPUGeneratorImpl>()});
  return drawn_.back().stand_in;
}

void begin_capture(
    orStream_t stream,
    orStreamCaptureMode mode,
    const std::shared_ptr<Capture>& capture) {
  OPENREG_CHECK(orStreamBeginCapture(stream, mode));
  const std::lock_guard lock(captures().mutex);
  captures().by_id.emplace(id_of(stream), capture);
  g_captures.fetch_add(1, std::memory_order_release);
}

orError_t end_capture(
    orStream_t stream,
    const std::shared_ptr<Capture>& capture,
    orGraph_t* graph) {
  const orError_t error = orStreamEndCapture(stream, graph);
  if (error == orErrorStreamCaptureWrongThread) {
    return error; // the capture continues
  }
  const std::lock_guard lock(captures().mutex);
  const auto removed = std::erase_if(
      captures().by_id,
      [&capture](const auto& each) { return each.second == capture; });
  g_captures.fetch_sub(static_cast<int>(removed), std::memory_order_release);
  return error;
}

uint64_t capture_id(orStream_t stream) {
  return captures_underway() ? id_of(stream) : 0;
}

std::shared_ptr<Capture> capture_of(orStream_t stream) {
  const uint64_t id = capture_id(stream);
  if (id == 0) {
    return nullptr;
  }
  const std::lock_guard lock(captures().mutex);
  const auto found = captures().by_id.find(id);
  return found != captures().by_id.end() ? found->second : nullptr;
}

bool is_captured(c10::DeviceIndex device) {
  return captures_underway() && id_of(current_handle(device)) != 0;
}

} // namespace openreg::aten
