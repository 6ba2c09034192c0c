// SPDX-License-Identifier: BSD-3-Clause
// The part of the C API that moves and sets bytes.
#include "activity/recorder.h"
#include "base/device_number.h"
#include "base/error.h"
#include "device/memory_ranges.h"
#include "device/runtime.h"
#include "device/stream_handles.h"
#include "memory/host_memory.h"
#include "stream/capture.h"

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

using namespace openreg;

namespace {

/// The device whose default stream orders a synchronous copy.
int device_of_copy(const void* dst, const void* src) {
  const int to = device_of(dst);
  const int from = device_of(src);
  return to >= 0 ? to : from >= 0 ? from : current_device();
}

/// Whether later work can use the memory: pageable host memory may disappear.
bool stays(const void* pointer) {
  return device_of(pointer) >= 0 || host_memory::find(pointer).has_value();
}

void check_on_device(const char* argument, const void* pointer, int device) {
  check_device(device, runtime().device_count());
  const int owner = device_of(pointer);
  if (owner >= 0 && owner != device) {
    throw Failure(
        orErrorInvalidValue,
        std::string(argument) + " " + hex(pointer) + " belongs to device " +
            std::to_string(owner) + ", not to device " +
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
    check_copy(dst, count, src, count, orMemcpyDeviceToDevice);
  }
}

/// Checks one side of a 2D copy; returns the number of bytes it spans.
std::size_t check_pitch(
    const char* argument,
    std::size_t pitch,
    std::size_t width,
    std::size_t height) {
  if (pitch < width) {
    throw Failure(
        orErrorInvalidValue,
        std::string(argument) + " " + std::to_string(pitch) +
            " is less than the width " + std::to_string(width) +
            ": expected a pitch of at least the width");
  }
  if (width == 0 || height == 0) {
    return 0;
  }
  if (pitch > SIZE_MAX / height) {
    throw Failure(
        orErrorInvalidValue,
        std::string(argument) + " " + std::to_string(pitch) + " times height " +
            std::to_string(height) + " overflows: expected at most " +
            std::to_string(SIZE_MAX));
  }
  return Copy2D::extent(pitch, width, height);
}

/// Checks a 2D copy; returns whether there is anything to copy.
bool check_copy_2d(const Copy2D& copy, orMemcpyKind kind) {
  const auto& [dst, dst_pitch, src, src_pitch, width, height, route] = copy;
  const std::size_t to = check_pitch("dpitch", dst_pitch, width, height);
  const std::size_t from = check_pitch("spitch", src_pitch, width, height);
  if (to == 0) {
    return false;
  }
  check_copy(dst.address, to, src.address, from, kind);
  return true;
}

/// Throws the failure of the device that owns `pointer`, if it has one.
Place place_of(const void* pointer) {
  auto* address = const_cast<void*>(pointer);
  const int device = device_of(pointer);
  return device < 0 ? Place{address}
                    : Place{address, runtime().device(device).state().check()};
}

/// The kinds of memory on both sides of a copy, for its record.
Route route_of(const void* dst, const void* src) {
  if (!activity::is_on(orActivityMemcpy)) [[likely]] {
    return {};
  }
  const bool to_host = device_of(dst) < 0;
  const bool from_host = device_of(src) < 0;
  const orMemcpyKind kind = to_host
      ? (from_host ? orMemcpyHostToHost : orMemcpyDeviceToHost)
      : (from_host ? orMemcpyHostToDevice : orMemcpyDeviceToDevice);
  orMemoryType memory = orMemoryTypeDevice;
  if (to_host || from_host) {
    const bool pinned = host_memory::find(to_host ? dst : src).has_value();
    memory = pinned ? orMemoryTypeHost : orMemoryTypeUnmanaged;
  }
  return {static_cast<std::uint8_t>(kind), static_cast<std::uint8_t>(memory)};
}

Copy copy_of(void* dst, const void* src, std::size_t count) {
  return {place_of(dst), place_of(src), count, route_of(dst, src)};
}

/// The stream that orders a call without one.
Stream& default_stream(int device) {
  Capture::check_may_wait(device);
  return runtime().device(device).default_stream();
}

/// A copy between devices is ordered after the default streams of both. Waits
/// for the stream that does not execute it.
void wait_for_source(const Stream& executing, const void* src) {
  const int from = device_of(src);
  if (from >= 0 && from != executing.device()) {
    Stream& source = default_stream(from);
    if (source.runs_here()) {
      source.check_may_run();
    } else {
      source.drain(source.deadline());
      if (auto failure = source.failure()) {
        throw Failure(std::move(*failure));
      }
    }
  }
}

/// The stream that orders a call. Without an explicit stream it is the default
/// stream, and the call blocks.
class Order {
 public:
  static Order by(orStream_t stream) {
    return Order(stream_of(stream), /*at_once=*/false);
  }
  static Order by_default(int device) {
    return Order(default_stream(device), /*at_once=*/true);
  }

  /// Blocks until the command has run unless `asynchronous`.
  void submit(Command command, bool asynchronous = true) const {
    if (asynchronous && !at_once_) {
      stream_.enqueue(std::move(command), epoch_);
    } else {
      stream_.run(std::move(command), epoch_);
    }
  }
  /// A copy with pageable host memory blocks, as in CUDA.
  void submit_copy(const void* dst, const void* src, Command copy) const {
    if (at_once_) {
      wait_for_source(stream_, src);
    }
    submit(std::move(copy), at_once_ || (stays(dst) && stays(src)));
  }

 private:
  Order(Stream& stream, bool at_once)
      : stream_(stream), epoch_(stream.check_usable()), at_once_(at_once) {}

  Stream& stream_;
  const Stream::Epoch epoch_;
  const bool at_once_;
};

void copy(
    const Order& order,
    void* dst,
    const void* src,
    std::size_t count,
    orMemcpyKind kind) {
  check_kind(kind);
  const Copy copy = copy_of(dst, src, count);
  if (count > 0) {
    check_copy(dst, count, src, count, kind);
    order.submit_copy(dst, src, copy);
  }
}

void copy_2d(
    const Order& order,
    void* dst,
    std::size_t dst_pitch,
    const void* src,
    std::size_t src_pitch,
    std::size_t width,
    std::size_t height,
    orMemcpyKind kind) {
  check_kind(kind);
  const Copy2D copy{
      place_of(dst),
      dst_pitch,
      place_of(src),
      src_pitch,
      width,
      height,
      route_of(dst, src)};
  if (check_copy_2d(copy, kind)) {
    order.submit_copy(dst, src, std::make_unique<const Copy2D>(copy));
  }
}

void copy_peer(
    const Order& order,
    void* dst,
    int dst_device,
    const void* src,
    int src_device,
    std::size_t count) {
  const Copy copy = copy_of(dst, src, count);
  check_peer_copy(dst, dst_device, src, src_device, count);
  if (count > 0) {
    order.submit_copy(dst, src, copy);
  }
}

void set(const Order& order, void* pointer, int value, std::size_t count) {
  if (count > 0) {
    const Fill fill{
        place_of(pointer), static_cast<unsigned char>(value), count};
    check_set("devPtr", pointer, count);
    order.submit(fill);
  }
}

} // namespace

extern "C" {

orError_t
orMemcpy(void* dst, const void* src, size_t count, orMemcpyKind kind) noexcept {
  return api_call("orMemcpy", [&] {
    copy(Order::by_default(device_of_copy(dst, src)), dst, src, count, kind);
  });
}

orError_t orMemcpyAsync(
    void* dst,
    const void* src,
    size_t count,
    orMemcpyKind kind,
    orStream_t stream) noexcept {
  return api_call(
      "orMemcpyAsync", [&] { copy(Order::by(stream), dst, src, count, kind); });
}

orError_t orMemcpy2D(
    void* dst,
    size_t dpitch,
    const void* src,
    size_t spitch,
    size_t width,
    size_t height,
    orMemcpyKind kind) noexcept {
  return api_call("orMemcpy2D", [&] {
    const auto order = Order::by_default(device_of_copy(dst, src));
    copy_2d(order, dst, dpitch, src, spitch, width, height, kind);
  });
}

orError_t orMemcpy2DAsync(
    void* dst,
    size_t dpitch,
    const void* src,
    size_t spitch,
    size_t width,
    size_t height,
    orMemcpyKind kind,
    orStream_t stream) noexcept {
  return api_call("orMemcpy2DAsync", [&] {
    const auto order = Order::by(stream);
    copy_2d(order, dst, dpitch, src, spitch, width, height, kind);
  });
}

orError_t orMemcpyPeer(
    void* dst,
    int dstDevice,
    const void* src,
    int srcDevice,
    size_t count) noexcept {
  return api_call("orMemcpyPeer", [&] {
    check_device(dstDevice, runtime().device_count());
    const auto order = Order::by_default(dstDevice);
    copy_peer(order, dst, dstDevice, src, srcDevice, count);
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
    copy_peer(Order::by(stream), dst, dstDevice, src, srcDevice, count);
  });
}

orError_t orMemset(void* devPtr, int value, size_t count) noexcept {
  return api_call("orMemset", [&] {
    const auto order = Order::by_default(device_of_copy(devPtr, nullptr));
    set(order, devPtr, value, count);
  });
}

orError_t orMemsetAsync(
    void* devPtr,
    int value,
    size_t count,
    orStream_t stream) noexcept {
  return api_call(
      "orMemsetAsync", [&] { set(Order::by(stream), devPtr, value, count); });
}

} // extern "C"
