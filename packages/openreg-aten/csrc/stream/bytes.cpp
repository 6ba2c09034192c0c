// SPDX-License-Identifier: BSD-3-Clause
// Copies bytes with the runtime.
#include "stream/bytes.h"

#include "device/device.h"
#include "device/error.h"
#include "device/gil.h"
#include "stream/stream.h"

#include <cstring>

namespace openreg::aten {

void copy_bytes(
    c10::DeviceIndex device,
    void* dst,
    const void* src,
    std::size_t size,
    bool async) {
  enqueue_copy(device, dst, src, size);
  if (!async) { // a failed stream has dropped the copy
    synchronize_current_stream(device);
  }
}

void fill_idle(
    c10::DeviceIndex device,
    void* dst,
    const void* src,
    std::size_t size) {
  if (kernels_reach_memory()) {
    std::memcpy(to_kernel(dst), src, size);
  } else {
    copy_bytes(device, dst, src, size);
  }
}

const void* readable(
    c10::DeviceIndex device,
    const void* src,
    std::size_t size,
    void* buffer) {
  if (C10_LIKELY(kernels_reach_memory())) {
    return to_kernel(src);
  }
  copy_bytes(device, buffer, src, size);
  return buffer;
}

void enqueue_copy(
    c10::DeviceIndex device,
    void* dst,
    const void* src,
    std::size_t size) {
  const GilRelease released;
  OPENREG_CHECK(
      orMemcpyAsync(dst, src, size, orMemcpyDefault, current_handle(device)));
}

} // namespace openreg::aten
