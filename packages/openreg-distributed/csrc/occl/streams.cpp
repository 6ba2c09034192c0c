// SPDX-License-Identifier: BSD-3-Clause
// The runtime's streams and kernels as PyTorch streams.
#include "occl/streams.h"

#include <c10/core/impl/VirtualGuardImpl.h>
#include <c10/util/Exception.h>

#include <device_type.h>
#include <mutex>
#include <unordered_set>
#include <utility>

namespace openreg::distributed {
namespace {

c10::impl::VirtualGuardImpl guard() {
  return c10::impl::VirtualGuardImpl(device_type());
}

c10::Device device_of(c10::DeviceIndex index) {
  return c10::Device(device_type(), index);
}

orStream_t create_stream(c10::DeviceIndex device) {
  const auto impl = guard();
  const c10::Device previous = impl.exchangeDevice(device_of(device));
  orStream_t handle = nullptr;
  const orError_t error = orStreamCreate(&handle);
  impl.uncheckedSetDevice(previous);
  check(error);
  return handle;
}

// A StreamId is the handle as a number, as for external streams.
c10::Stream wrap(c10::DeviceIndex device, orStream_t handle) {
  return c10::Stream(
      c10::Stream::UNSAFE,
      device_of(device),
      reinterpret_cast<c10::StreamId>(handle));
}

orStream_t handle_of(const c10::Stream& stream) {
  return static_cast<orStream_t>(guard().getStreamNativeHandle(stream));
}

struct Command {
  std::function<void()> run;
  std::function<void()> end;
};

} // namespace

void check(orError_t error) {
  TORCH_CHECK(error == orSuccess, "occl: ", orGetErrorMessage());
}

c10::Stream current_stream(c10::DeviceIndex device) {
  return guard().getStream(device_of(device));
}

bool is_captured(const c10::Stream& stream) {
  return guard().isStreamCapturing(stream);
}

c10::DeviceIndex current_device() {
  return guard().getDevice().index();
}

OwnStream::OwnStream(c10::DeviceIndex device)
    : handle_(create_stream(device)), stream_(wrap(device, handle_)) {}

OwnStream::~OwnStream() {
  // The group's calls have reported their failures; the device must not report
  // them again.
  if (orStreamQuery(handle_) != orErrorNotReady) {
    static_cast<void>(orStreamSynchronize(handle_));
    static_cast<void>(orGetLastError());
  }
  const orError_t error = orStreamDestroy(handle_);
  // A forked child drops inherited objects silently.
  if (error != orSuccess && error != orErrorInitialization) {
    TORCH_WARN("occl: ", orGetErrorMessage());
  }
}

StreamScope::StreamScope(c10::Stream stream)
    : previous_(guard().exchangeStream(stream)) {}

StreamScope::~StreamScope() {
  guard().exchangeStream(previous_);
}

std::shared_ptr<c10::Event> record_event(
    const c10::Stream& stream,
    bool has_time) {
  auto event = std::make_shared<c10::Event>(
      device_type(),
      has_time ? c10::EventFlag::BACKEND_DEFAULT
               : c10::EventFlag::PYTORCH_DEFAULT);
  event->record(stream);
  return event;
}

bool is_reached(const c10::Event& event) {
  try {
    return event.query();
  } catch (const c10::Error&) {
    return true; // the failure of that work
  }
}

orLaunchInfo describe_call(const std::string& name, uint64_t bytes) {
  static std::mutex mutex;
  static auto* names = new std::unordered_set<std::string>; // valid forever
  orLaunchInfo info = OPENREG_LAUNCH_INFO_INIT;
  const std::lock_guard lock(mutex);
  info.name = names->insert(name).first->c_str();
  info.bytes = bytes;
  return info;
}

void run_now(
    const c10::Stream& stream,
    const std::function<void()>& run,
    const orLaunchInfo& info) {
  check(orLaunchKernelBlockingWithInfo(
      handle_of(stream),
      [](void* p) { (*static_cast<const std::function<void()>*>(p))(); },
      const_cast<std::function<void()>*>(&run),
      &info));
}

void forget_launch() {
  check(orActivityForget());
}

Progress progress_of(const c10::Stream& stream) {
  Progress progress{};
  check(orStreamGetProgress(
      handle_of(stream), &progress.enqueued, &progress.completed));
  return progress;
}

bool has_failed(const c10::Stream& stream) {
  if (is_captured(stream)) { // because a query would fail
    return false;
  }
  const orError_t error = orStreamQuery(handle_of(stream));
  if (error == orSuccess || error == orErrorNotReady) {
    return false;
  }
  static_cast<void>(orGetLastError());
  return true;
}

std::string why_dropped() {
  return orGetErrorMessage();
}

void launch(
    const c10::Stream& stream,
    std::function<void()> run,
    std::function<void()> end,
    const orLaunchInfo& info) {
  auto command =
      std::make_unique<Command>(Command{std::move(run), std::move(end)});
  const orError_t error = orLaunchKernelWithInfo(
      handle_of(stream),
      [](void* p) { static_cast<Command*>(p)->run(); },
      command.get(),
      [](void* p) {
        const std::unique_ptr<Command> owned(static_cast<Command*>(p));
        if (owned->end) {
          owned->end();
        }
      },
      &info);
  check(error);
  static_cast<void>(command.release()); // the runtime frees it
}

} // namespace openreg::distributed
