// SPDX-License-Identifier: BSD-3-Clause
// The part of the C API that moves and sets bytes.
#include "error.h"
#include "host_memory.h"
#include "memory_ranges.h"
#include "runtime.h"

#include <string>

namespace openreg {
namespace {

/// The device whose default stream orders a synchronous copy.
int device_of_copy(const void* dst, const void* src) {
  const int to = device_of(dst);
  const int from = device_of(src);
  return to >= 0 ? to : from >= 0 ? from : current_device();
}

bool asynchronous(const void* pointer) {
  return device_of(pointer) >= 0 || host_memory::find(pointer).has_value();
}

void check_on_device(const char* argument, const void* pointer, int device) {
  check_device(device, runtime().device_count());
  const int owner = device_of(pointer);
  if (owner >= 0 && owner != device) {
    throw Failure(
        orErrorInvalidValue,
        std::string(argument) + " " + hex(pointer) +
            " is a pointer of device " + std::to_string(owner) + ", not of " +
            std::to_string(device));
  }
}

/// Checks the arguments of a copy between devices.
void check_peer_copy(
    const void* dst,
    int dst_device,
    const void* src,
    int src_device,
    std::size_t count) {
  check_on_device("dst", dst, dst_device);
  check_on_device("src", src, src_device);
  if (count > 0) {
    check_copy(dst, src, count, orMemcpyDeviceToDevice);
  }
}

/// The stream that orders a call without one.
Stream& default_stream(int device) {
  return runtime().device(device).default_stream();
}

} // namespace
} // namespace openreg

using openreg::api_call;
using openreg::Copy;
using openreg::Fill;

extern "C" {

orError_t
orMemcpy(void* dst, const void* src, size_t count, orMemcpyKind kind) noexcept {
  return api_call("orMemcpy", [&] {
    openreg::Stream& stream =
        openreg::default_stream(openreg::device_of_copy(dst, src));
    stream.check_usable();
    openreg::check_kind(kind);
    if (count > 0) {
      openreg::check_copy(dst, src, count, kind);
      stream.run(Copy{dst, src, count});
    }
  });
}

orError_t orMemcpyAsync(
    void* dst,
    const void* src,
    size_t count,
    orMemcpyKind kind,
    orStream_t stream) noexcept {
  return api_call("orMemcpyAsync", [&] {
    openreg::Stream& object = openreg::stream_of(stream);
    object.check_usable();
    openreg::check_kind(kind);
    if (count == 0) {
      return;
    }
    openreg::check_copy(dst, src, count, kind);
    const Copy copy{dst, src, count};
    if (openreg::asynchronous(dst) && openreg::asynchronous(src)) {
      object.enqueue(copy);
    } else {
      // Pageable host memory: done when the call returns, as in CUDA.
      object.run(copy);
    }
  });
}

orError_t orMemcpyPeer(
    void* dst,
    int dstDevice,
    const void* src,
    int srcDevice,
    size_t count) noexcept {
  return api_call("orMemcpyPeer", [&] {
    openreg::check_peer_copy(dst, dstDevice, src, srcDevice, count);
    openreg::Stream& stream = openreg::default_stream(dstDevice);
    stream.check_usable();
    if (count > 0) {
      stream.run(Copy{dst, src, count});
    }
  });
}

orError_t orMemcpyPeerAsync(
    void* dst,
    int dstDevice,
    const void* src,
    int srcDevice,
    size_t count,
    orStream_t stream) noexcept {
  return api_call("orMemcpyPeerAsync", [&] {
    openreg::Stream& object = openreg::stream_of(stream);
    object.check_usable();
    openreg::check_peer_copy(dst, dstDevice, src, srcDevice, count);
    if (count > 0) {
      object.enqueue(Copy{dst, src, count});
    }
  });
}

orError_t orMemset(void* devPtr, int value, size_t count) noexcept {
  return api_call("orMemset", [&] {
    openreg::Stream& stream =
        openreg::default_stream(openreg::device_of_copy(devPtr, nullptr));
    stream.check_usable();
    if (count > 0) {
      openreg::check_range("devPtr", devPtr, count);
      stream.run(Fill{devPtr, static_cast<unsigned char>(value), count});
    }
  });
}

orError_t orMemsetAsync(
    void* devPtr,
    int value,
    size_t count,
    orStream_t stream) noexcept {
  return api_call("orMemsetAsync", [&] {
    openreg::Stream& object = openreg::stream_of(stream);
    object.check_usable();
    if (count > 0) {
      openreg::check_range("devPtr", devPtr, count);
      object.enqueue(Fill{devPtr, static_cast<unsigned char>(value), count});
    }
  });
}

} // extern "C"
