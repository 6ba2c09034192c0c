// SPDX-License-Identifier: BSD-3-Clause
// Captures of streams into graphs, for the rest of this library: whether a
// stream is captured, which pool its blocks come from, and which generators its
// kernels use.
//
// A captured kernel keeps its CPU generator, and the program may reseed the
// device generator after the capture. The kernel therefore gets a separate
// generator, which has the state of the device generator while a replay runs.
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

  /// The pool for blocks of its streams.
  const c10::MempoolId_t& pool() const {
    return pool_;
  }
  /// Returns the generator that its kernels use instead of a device generator.
  at::Generator stand_in_for(const std::shared_ptr<GeneratorState>& state);
  /// All generators that its kernels use.
  const std::vector<Drawn>& drawn() const {
    return drawn_;
  }

 private:
  const c10::MempoolId_t pool_;
  std::mutex mutex_; // guards drawn_ until the capture has ended
  std::vector<Drawn> drawn_;
};

/// Starts to capture a stream. Throws as orStreamBeginCapture().
void begin_capture(
    orStream_t stream,
    orStreamCaptureMode mode,
    const std::shared_ptr<Capture>& capture);
/// Ends a capture, even if it has failed. It then sets `graph` to null and
/// returns the error.
orError_t end_capture(
    orStream_t stream,
    const std::shared_ptr<Capture>& capture,
    orGraph_t* graph);

/// Returns the runtime's number of the capture that a stream belongs to, or 0.
/// Never throws.
OPENREG_ATEN_API uint64_t capture_id(orStream_t stream);
/// Returns the capture that a stream belongs to, or null. Never throws.
std::shared_ptr<Capture> capture_of(orStream_t stream);
/// Whether the current stream of a device is captured.
bool is_captured(c10::DeviceIndex device);

} // namespace openreg::aten
