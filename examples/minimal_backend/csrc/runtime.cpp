// SPDX-License-Identifier: BSD-3-Clause
#include "runtime.h"

#include <c10/util/Exception.h>
#include <torch/library.h>

#include <array>
#include <limits>

namespace torch_minimal {
namespace {

std::string text_of(orError_t error) {
  return std::string(orGetErrorName(error)) + ": " + orGetErrorMessage();
}

// One entry per device. ID 0 is the default stream; any other ID is a stream handle.
thread_local std::array<c10::StreamId, std::numeric_limits<c10::DeviceIndex>::max() + 1>
    t_streams{};

} // namespace

// [docs: errors]
void fail(orError_t error) {
  const c10::SourceLocation here{__func__, __FILE__, __LINE__};
  if (error == orErrorMemoryAllocation) throw c10::OutOfMemoryError(here, text_of(error));
  throw c10::AcceleratorError(here, static_cast<int>(error), text_of(error));
}

void warn(orError_t error) noexcept {
  try {
    TORCH_WARN(text_of(error));
  } catch (...) { // a filter turned the warning into an exception: drop it
    static_cast<void>(orGetLastError());
  }
}
// [docs: end]

bool in_bad_fork() noexcept {
  int bad = 0;
  return orIsInBadFork(&bad) == orSuccess && bad != 0;
}

c10::DeviceIndex device_count() noexcept {
  int count = 0;
  return orGetDeviceCount(&count) == orSuccess ? static_cast<c10::DeviceIndex>(count) : 0;
}

c10::DeviceIndex current_device() {
  int device = 0;
  check(orGetDevice(&device));
  return static_cast<c10::DeviceIndex>(device);
}

c10::DeviceIndex exchange_device(c10::DeviceIndex device) {
  const c10::DeviceIndex before = current_device();
  if (device != -1 && device != before) check(orSetDevice(device));
  return before;
}

// [docs: streams]
c10::Stream current_stream(c10::DeviceIndex device) {
  if (device == -1) device = current_device();
  TORCH_CHECK(device >= 0 && device < device_count(), "there is no device ",
              static_cast<int>(device));
  const c10::Device where(c10::kPrivateUse1, device);
  return c10::Stream(c10::Stream::UNSAFE, where, t_streams[device]);
}

c10::Stream exchange_stream(c10::Stream stream) {
  const c10::Stream before = current_stream(stream.device_index());
  t_streams[stream.device_index()] = stream.id();
  return before;
}

orStream_t handle_of(const c10::Stream& stream) {
  if (stream.id() != 0) return reinterpret_cast<orStream_t>(stream.id());
  orStream_t handle = nullptr;
  check(orStreamGetDefault(&handle, stream.device_index()));
  return handle;
}
// [docs: end]

// [docs: bindings]
// Operators for the Python package, so that the library builds without Python.
TORCH_LIBRARY(minimal, m) {
  m.def("device_count() -> int", [] { return static_cast<int64_t>(device_count()); });
  m.def("is_in_bad_fork() -> bool", [] { return in_bad_fork(); });
}
// [docs: end]

} // namespace torch_minimal
