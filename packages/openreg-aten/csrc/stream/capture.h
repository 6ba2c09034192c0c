// SPDX-License-Identifier: BSD-3-Clause
// Captures of streams into graphs, as the rest of the device sees them: whether
// a stream is captured, where its blocks come from, and what its kernels draw
// random numbers from.
//
// A captured kernel keeps the CPU generator that it was given, and a program
// seeds the device's after the capture too. So it is given a stand-in, which
// has the state of the device's generator while a replay runs.
#pragma once

#include "base/export.h"
#include "stream/captures.h"

#include <openreg/openreg.h>

#include <ATen/core/Generator.h>
#include <c10/core/Allocator.h>
#include <c10/core/Device.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

namespace openreg::aten {

class GeneratorState;

class Capture {
 public:
  struct Drawn {
    std::shared_ptr<GeneratorState> state;
    at::Generator stand_in;
  };

  explicit Capture(c10::MempoolId_t pool) : pool_(pool) {}

  /// Where blocks for its streams come from.
  const c10::MempoolId_t& pool() const {
    return pool_;
  }
  /// What its kernels draw from in place of a generator of the device.
  at::Generator stand_in_for(const std::shared_ptr<GeneratorState>& state);
  /// All that its kernels draw from.
  const std::vector<Drawn>& drawn() const {
    return drawn_;
  }

 private:
  const c10::MempoolId_t pool_;
  std::mutex mutex_; // of drawn_, until the capture has ended
  std::vector<Drawn> drawn_;
};

/// Begins to capture a stream. Throws as orStreamBeginCapture().
void begin_capture(
    orStream_t stream,
    orStreamCaptureMode mode,
    const std::shared_ptr<Capture>& capture);
/// Ends it, also if it has failed; null in `graph` then, and the error.
orError_t end_capture(
    orStream_t stream,
    const std::shared_ptr<Capture>& capture,
    orGraph_t* graph);

/// The runtime's number of the capture that a stream belongs to; 0 if it
/// belongs to none. Never throws.
OPENREG_ATEN_API uint64_t capture_id(orStream_t stream);
/// The capture that a stream belongs to, or null. Never throws.
std::shared_ptr<Capture> capture_of(orStream_t stream);
/// Whether the current stream of a device is captured.
bool is_captured(c10::DeviceIndex device);

} // namespace openreg::aten
